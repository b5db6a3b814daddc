"""What somebody probably meant: the nearest known word to one that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

ALIKE = 0.7  # from 0 to 1
LONGEST = 200  # letters of a word that is compared: a longer one is no slip


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that is most like this one, or nothing.

    Examples
    --------
    >>> nearest("logistc", ["forest", "logistic"]), nearest("Sex", ["sex", "age"]), nearest("x", ["logistic"])
    ('logistic', 'sex', '')
    """
    if len(word) > LONGEST:
        return ""
    plain = {name.casefold(): name for name in known if len(name) <= LONGEST}
    found = get_close_matches(word.casefold(), plain, n=1, cutoff=ALIKE)
    return plain[found[0]] if found else ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The question for a message, with a space before it, or nothing.

    Examples
    --------
    >>> did_you_mean("logistc", ["forest", "logistic"])
    " Did you mean 'logistic'?"
    """
    found = nearest(word, known)
    return f" Did you mean {found!r}?" if found else ""
