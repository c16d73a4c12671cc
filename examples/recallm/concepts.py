"""The concepts of a text, by rules: nouns, names and numbers, each as its stem. Registers the call `concepts`.

A word counts unless it is one of the small words below, or stands where a verb stands: behind `to` or an auxiliary, or,
in a sentence without one, behind the first subject. That is right for plain sentences, and needs neither a model nor a
dictionary.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import com

SMALL = frozenset(
    re.findall(
        r"\w+",
        """
        a an the this that these those some any each every no all both few many much more most other another
        such own same i me my mine we us our you your he him his she her hers it its they them their who whom
        whose which what when where why how and or but nor so yet if then than because while although though
        as of in on at by for with about against between into through during before after above below from up
        down out off over under again once here there to not only too very just also now never always often
        still ever soon really quite
        """,
    )
)
"""Words that are no concepts."""
SUBJECTS = frozenset({"i", "we", "you", "he", "she", "it", "they", "who", "that", "which", "what"})
"""Small words that a verb can stand behind."""
BEING = frozenset({"is", "are", "was", "were", "be", "been", "being", "am"})
"""Verbs that a noun can stand behind."""
AUXILIARIES = frozenset(re.findall(r"\w+", "has have had do does did will would shall should can could may might must"))
"""Verbs that another stands behind."""
_VOWEL = "aeiou"


class Concept(NamedTuple):
    name: str
    position: int


@com.call
def concepts(text: str) -> list[Concept]:
    """The concepts of a text in their order, positions counted from 1 through all of it."""
    found: list[str] = []
    for sentence in re.split(r"[.!?;:]+(?=\s|$)|\n+", text):
        found += _nouns(re.findall(r"[^\W_]+(?:['’][^\W_]+)?", sentence))
    return [Concept(name, position) for position, name in enumerate(found, 1)]


def _nouns(words: list[str]) -> list[str]:
    kept: list[str] = []
    subject = False
    verb = any(word.lower() in BEING | AUXILIARIES for word in words)
    before = ""
    for number, word in enumerate(words):
        lower = re.sub(r"['’]s?$", "", word.lower()) if re.search(r"['’]", word) else word.lower()
        name = word[0].isupper() and number > 0
        if lower in BEING | AUXILIARIES:
            pass
        elif lower in SMALL:
            subject = subject or lower in SUBJECTS
        elif word[0].isdigit() or name:
            kept.append(stem(lower))
            subject = True
        elif before == "to" or before in AUXILIARIES or (subject and not verb and before not in ("a", "an", "the")):
            verb = True
        else:
            kept.append(stem(lower))
            subject = True
        before = lower
    return kept


# ---------------------------------------------------------------- Porter's stemmer (1980)


def stem(word: str) -> str:
    """The stem of a word in small letters, by Porter's algorithm."""
    if len(word) < 3 or not word.isascii() or not word.isalpha():
        return word
    word = _plural(word)
    word = _past(word)
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _longest(word, _STEP2, 0)
    word = _longest(word, _STEP3, 0)
    word = _without(word)
    if word.endswith("e"):
        size = _measure(word[:-1])
        if size > 1 or (size == 1 and not _short(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


def _is_vowel(word: str, at: int) -> bool:
    return word[at] in _VOWEL or (word[at] == "y" and at > 0 and not _is_vowel(word, at - 1))


def _has_vowel(word: str) -> bool:
    return any(_is_vowel(word, at) for at in range(len(word)))


def _measure(word: str) -> int:
    """How often vowels are followed by consonants."""
    form = "".join("v" if _is_vowel(word, at) else "c" for at in range(len(word)))
    return len(re.findall("v+c+", form))


def _short(word: str) -> bool:
    """True if a word ends in consonant, vowel, consonant, the last of which is no w, x or y."""
    if len(word) < 3 or word[-1] in "wxy":
        return False
    end = len(word) - 1
    return not _is_vowel(word, end) and _is_vowel(word, end - 1) and not _is_vowel(word, end - 2)


def _plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        base = word[: -len(ending)]
        if word.endswith(ending) and _has_vowel(base):
            if base.endswith(("at", "bl", "iz")):
                return base + "e"
            if len(base) > 1 and base[-1] == base[-2] and not _is_vowel(base, len(base) - 1) and base[-1] not in "lsz":
                return base[:-1]
            return base + "e" if _measure(base) == 1 and _short(base) else base
    return word


_STEP2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "abli": "able", "alli": "al",
    "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al",
    "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble",
}  # fmt: skip
_STEP3 = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
_STEP4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate", "iti",
    "ous", "ive", "ize",
)  # fmt: skip


def _longest(word: str, endings: dict[str, str], least: int) -> str:
    """The word with the longest of the endings that it has in its other form, if enough stands before."""
    found = max((e for e in endings if word.endswith(e)), key=len, default="")
    if not found or _measure(word[: -len(found)]) <= least:
        return word
    return word[: -len(found)] + endings[found]


def _without(word: str) -> str:
    found = max((e for e in _STEP4 if word.endswith(e)), key=len, default="")
    base = word[: len(word) - len(found)]
    if not found or _measure(base) <= 1 or (found == "ion" and base[-1:] not in ("s", "t")):
        return word
    return base
