"""Tokens of a statement, and the cursor with which the parser reads them.

sqlglot's tokenizer does the cutting, with MySQL's quoting rules and without keywords: every
word is a word, and the grammar decides what it means where it stands (a column may be called
``date`` or ``any``). Values of strings and names are read from the source text.
"""

from __future__ import annotations

import re
from typing import ClassVar, NoReturn

from sqlglot.dialects.mysql import MySQL
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from shardmerge.schemas.model.errors import UnparsableDDL
from shardmerge.schemas.model.server_context import ServerContext

from .comments import execute_version_comments
from .reserved import RESERVED

NAME = "`"
"""``Cursor.word`` of a quoted name."""
STRING = "'"
NATIONAL = "N'"
NUMBER = "0"
HEX = "0x'"
BIT = "0b'"
END = ""
"""``Cursor.word`` behind the last token."""
_LITERALS = frozenset({STRING, NATIONAL, NUMBER, HEX, BIT, END})

_OPERATORS = {
    "||": TokenType.DPIPE, "&&": TokenType.DAMP, "<=>": TokenType.NULLSAFE_EQ,
    "<=": TokenType.LTE, ">=": TokenType.GTE, "<>": TokenType.NEQ, "!=": TokenType.NEQ,
    ":=": TokenType.COLON_EQ, "->": TokenType.ARROW, "->>": TokenType.DARROW,
    "@@": TokenType.SESSION_PARAMETER, "<<": TokenType.LT, ">>": TokenType.GT,
}  # fmt: skip


class _Tokenizer(MySQL.Tokenizer):
    KEYWORDS: ClassVar = _OPERATORS
    COMMANDS: ClassVar = set()


class _AnsiTokenizer(_Tokenizer):
    QUOTES: ClassVar = ["'"]
    IDENTIFIERS: ClassVar = ["`", '"']


class _PlainTokenizer(_Tokenizer):
    STRING_ESCAPES: ClassVar = ["'", '"']


class _PlainAnsiTokenizer(_AnsiTokenizer):
    STRING_ESCAPES: ClassVar = ["'", '"']


_KINDS = {
    (False, True): _Tokenizer,
    (True, True): _AnsiTokenizer,
    (False, False): _PlainTokenizer,
    (True, False): _PlainAnsiTokenizer,
}
"""By ANSI quotes and backslash escapes."""
_IDLE: dict[tuple[bool, bool], list[_Tokenizer]] = {mode: [] for mode in _KINDS}
"""A tokenizer keeps the text that it is cutting: whoever parses takes one out, in any thread."""


def _tokens(text: str, mode: tuple[bool, bool]) -> list[Token]:
    idle = _IDLE[mode]
    try:
        tokenizer = idle.pop()
    except IndexError:
        tokenizer = _KINDS[mode](dialect="mysql")
    try:
        return tokenizer.tokenize(text)
    finally:
        idle.append(tokenizer)


_MARKS = {
    TokenType.IDENTIFIER: NAME,
    TokenType.STRING: STRING,
    TokenType.NATIONAL_STRING: NATIONAL,
    TokenType.NUMBER: NUMBER,
    TokenType.HEX_STRING: HEX,
    TokenType.BIT_STRING: BIT,
}
_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_NAME_LIKE_A_NUMBER = re.compile(r"\d+[eE]")
"""``1e`` without an exponent is a name."""


class Cursor:
    """A place in the tokens of one statement.

    Attributes:
        sql: The statement as it came; offsets count its characters.
        word: The current token: an unquoted word in upper case, a symbol as it is, or one of
            this module's marks. A quoted name is never equal to a keyword.
        index: The current token's number.
    """

    __slots__ = (
        "_closing",
        "_ends",
        "_starts",
        "_texts",
        "_words",
        "context",
        "index",
        "sql",
        "word",
    )

    def __init__(self, sql: str, context: ServerContext) -> None:
        self.sql = sql
        self.context = context
        text = execute_version_comments(sql, context)
        try:
            tokens = _tokens(text, (context.ansi_quotes, context.backslash_escapes))
        except TokenError as error:
            raise UnparsableDDL(f"unreadable text: {error}", sql, len(sql)) from error
        words: list[str] = []
        for token in tokens:
            mark = _MARKS.get(token.token_type)
            words.append(_word(token.text) if mark is None else mark)
        words.append(END)
        self._words = words
        self._texts = [token.text for token in tokens]
        self._starts = [token.start for token in tokens]
        self._ends = [token.end + 1 for token in tokens]
        self._closing: dict[int, int] | None = None
        self.index = 0
        self.word = words[0]

    # -- moving ---------------------------------------------------------------------------

    def advance(self) -> None:
        """Step to the next token; at the end of the statement an error."""
        if self.word == END:
            self.fail("more text")
        self.index += 1
        self.word = self._words[self.index]

    def seek(self, index: int) -> None:
        """Go back to a token that was looked at before."""
        self.index = index
        self.word = self._words[index]

    def ahead(self, count: int = 1) -> str:
        """The word ``count`` tokens further on."""
        place = self.index + count
        return self._words[place] if place < len(self._words) else END

    def accept(self, *words: str) -> bool:
        """Step over these words if exactly they stand here."""
        if self.word != words[0]:
            return False
        if len(words) > 1:
            for count, word in enumerate(words):
                if self.ahead(count) != word:
                    return False
            self.index += len(words) - 1
        self.index += 1
        self.word = self._words[self.index]
        return True

    def accept_any(self, words: frozenset[str] | tuple[str, ...]) -> str:
        """Step over one of these words; "" when none stands here."""
        word = self.word
        if word not in words:
            return ""
        self.advance()
        return word

    def accept_nested(self) -> int:
        """Step over the parentheses that the one before holds and nothing else; how many.

        Each must be closed by itself. A text of hundreds of them is read without recursion.
        """
        count = 0
        while self.word == "(" and self._closes(self.index) + 1 == self._closes(self.index - 1):
            self.advance()
            count += 1
        return count

    def _closes(self, opening: int) -> int:
        """Where the parenthesis at this place is closed; where the text ends if it is not."""
        if self._closing is None:
            self._closing = {}
            opened: list[int] = []
            for place, word in enumerate(self._words):
                if word == "(":
                    opened.append(place)
                elif word == ")" and opened:
                    self._closing[opened.pop()] = place
        return self._closing.get(opening, len(self._words))

    def expect(self, *words: str) -> None:
        """Step over these words, which must stand here."""
        for word in words:
            if self.word != word:
                self.fail(" ".join(words))
            self.advance()

    def fail(self, expected: str) -> NoReturn:
        """Give up here.

        Raises:
            UnparsableDDL: Always; it names what was expected and what stands there.
        """
        if self.word == END:
            raise UnparsableDDL(
                f"expected {expected}, found the end of the statement", self.sql, len(self.sql)
            )
        start = self._starts[self.index]
        found = self.sql[start : self._ends[self.index]]
        raise UnparsableDDL(f"expected {expected}, found {found!r}", self.sql, start)

    # -- text -----------------------------------------------------------------------------

    @property
    def offset(self) -> int:
        """Index of the current token's first character."""
        return self._starts[self.index] if self.word != END else len(self.sql)

    def text(self, token: int | None = None) -> str:
        """The source text of a token, the current one by default."""
        place = self.index if token is None else token
        return self.sql[self._starts[place] : self._ends[place]]

    def between(self, start: int, end: int) -> str:
        """The source text of the tokens ``[start, end)``."""
        return self.sql[self._starts[start] : self._ends[end - 1]] if end > start else ""

    def touches_next(self) -> bool:
        """Whether the next token begins where the current one ends."""
        return (
            self.index + 1 < len(self._starts)
            and self._ends[self.index] == self._starts[self.index + 1]
        )

    # -- values ---------------------------------------------------------------------------

    def is_name(self) -> bool:
        """Whether an identifier may stand here."""
        word = self.word
        if word == NAME:
            return True
        if word == NUMBER:
            return _NAME_LIKE_A_NUMBER.fullmatch(self._texts[self.index]) is not None
        if word in RESERVED:
            # A word right before a dot is a name, whatever it is.
            return self.ahead() == "." and self.touches_next()
        if word in _LITERALS:
            return False
        first = word[0]
        return first.isalnum() or first in "_$" or ord(first) > 127

    def identifier(self, what: str = "a name", *, reserved: bool = False) -> str:
        """Read an identifier; ``reserved``: after a dot reserved words and digits are names."""
        if not self.is_name() and not (reserved and self._is_word()):
            self.fail(what)
        value = self._texts[self.index]
        self.advance()
        return value

    def _is_word(self) -> bool:
        if self.word == NUMBER:
            return self._texts[self.index].isalnum()
        return self.word in RESERVED

    def is_string(self) -> bool:
        """Whether a string literal stands here."""
        return self.word in (STRING, NATIONAL)

    def string(self, what: str = "a string") -> str:
        """Read a string literal; neighbouring literals are one string."""
        if not self.is_string():
            self.fail(what)
        value = self._string_value()
        self.advance()
        while self.word == STRING:
            value += self._string_value()
            self.advance()
        return value

    def _string_value(self) -> str:
        raw = self.text()
        if raw[0] in "nN":
            raw = raw[1:]
        quote = raw[0]
        body = raw[1:-1]
        if self.context.backslash_escapes and "\\" in body:
            pieces = re.split(r"(\\.)", body, flags=re.DOTALL)
            return "".join(
                _unescape(piece) if piece[:1] == "\\" else piece.replace(quote * 2, quote)
                for piece in pieces
            )
        return body.replace(quote * 2, quote)

    def name_or_string(self, what: str) -> str:
        """Read a name that may be written as a string (charsets, collations, engines)."""
        return self.string(what) if self.is_string() else self.identifier(what)

    def integer(self, what: str = "a number") -> int:
        """Read an unsigned integer, decimal or hexadecimal."""
        if self.word == NUMBER and self._texts[self.index].isdigit():
            value = int(self._texts[self.index])
        elif self.word == HEX:
            value = int(self._texts[self.index] or "0", 16)
        else:
            self.fail(what)
        self.advance()
        return value


def _word(text: str) -> str:
    """``:=`` means ``=`` wherever the grammar has one."""
    return "=" if text == ":=" else text.upper()


def _unescape(piece: str) -> str:
    """The character of a backslash sequence; those of LIKE patterns stay as they are.

    Source: MySQL Reference Manual, "String Literals".
    """
    character = piece[1]
    return piece if character in "%_" else _ESCAPES.get(character, character)
