from com.diagnostics import Diagnostic as Diagnostic
from com.diagnostics import Error as Error
from com.library import CheckError as CheckError
from com.library import Memory as Memory
from com.library import check as check
from com.library import compile as compile
from com.library import connect as connect
from com.library import create as create
from com.library import execute as execute
from com.library import read_schema as read_schema
from com.plan import Plan as Plan
from com.runtime.calls import call as call
from com.runtime.outcome import Outcome as Outcome
from com.runtime.outcome import RunError as RunError
from com.schema import Schema as Schema

__version__: str
__all__: list[str]
