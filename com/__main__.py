"""`python -m com`."""

from com.cli import main

if __name__ == "__main__":
    main()
