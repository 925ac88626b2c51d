"""Tokens of a statement, and the cursor with which the parser reads them.

sqlglot's tokenizer splits the text, with MySQL's quoting rules and without keywords. The grammar
decides what a word means in its context (a column may be called ``date`` or ``any``). Values of
strings and names are read from the source text.
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
"""``Cursor.word`` at a quoted name."""
STRING = "'"
NATIONAL = "N'"
NUMBER = "0"
HEX = "0x'"
BIT = "0b'"
END = ""
"""``Cursor.word`` after the last token."""
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
"""(ANSI quotes, backslash escapes) → tokenizer."""
_IDLE: dict[tuple[bool, bool], list[_Tokenizer]] = {mode: [] for mode in _KINDS}
"""Idle tokenizers. A tokenizer holds the text that it splits, so each parse takes one from here;
threads do not share one."""


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
"""Matches ``1e`` without an exponent, which is a name."""


class Cursor:
    """A position in the tokens of one statement.

    Attributes:
        sql: The statement's original text; offsets count its characters.
        word: The current token: an unquoted word in upper case, a symbol, or a constant of this
            module such as ``NAME``. So a quoted name is never equal to a keyword.
        index: The current token's index.
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
            raise UnparsableDDL(
                f"unreadable text: {error}", sql, len(sql), code="SM-1101"
            ) from error
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
        """Step to the next token; fails at the end of the statement."""
        if self.word == END:
            self.fail("more text")
        self.index += 1
        self.word = self._words[self.index]

    def seek(self, index: int) -> None:
        """Go back to an earlier token."""
        self.index = index
        self.word = self._words[index]

    def ahead(self, count: int = 1) -> str:
        """The word ``count`` tokens further on."""
        place = self.index + count
        return self._words[place] if place < len(self._words) else END

    def accept(self, *words: str) -> bool:
        """Step over these words if they are the next tokens."""
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
        """Step over one of these words and return it; "" when the next token is none of them."""
        word = self.word
        if word not in words:
            return ""
        self.advance()
        return word

    def accept_nested(self) -> int:
        """Step over opening parentheses that each enclose the whole contents of the one before.

        Returns how many; the caller must read as many closing ones. So hundreds of nested
        parentheses need no recursion.
        """
        count = 0
        while self.word == "(" and self._closes(self.index) + 1 == self._closes(self.index - 1):
            self.advance()
            count += 1
        return count

    def _closes(self, opening: int) -> int:
        """The index of the token that closes this parenthesis, or of the end of the text."""
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
        """Step over these words, which must be the next tokens."""
        for word in words:
            if self.word != word:
                self.fail(" ".join(words))
            self.advance()

    def fail(self, expected: str) -> NoReturn:
        """Raise an error at the current token.

        Raises:
            UnparsableDDL: Always; it says what was expected and what was found.
        """
        if self.word == END:
            raise UnparsableDDL(
                f"expected {expected}, found the end of the statement",
                self.sql,
                len(self.sql),
                code="SM-1101",
            )
        start = self._starts[self.index]
        found = self.sql[start : self._ends[self.index]]
        raise UnparsableDDL(
            f"expected {expected}, found {found!r}", self.sql, start, code="SM-1101"
        )

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
        """Whether the current token can be an identifier."""
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
        """Read an identifier; ``reserved``: accept reserved words and digits, as after a dot."""
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
        """Whether the current token is a string literal."""
        return self.word in (STRING, NATIONAL)

    def string(self, what: str = "a string") -> str:
        """Read a string literal; adjacent literals are one string."""
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
    """The text in upper case. ``:=`` becomes ``=``: the grammar treats both alike."""
    return "=" if text == ":=" else text.upper()


def _unescape(piece: str) -> str:
    """The character of a backslash sequence; sequences with % and _, for LIKE, do not change.

    Source: MySQL Reference Manual, "String Literals".
    """
    character = piece[1]
    return piece if character in "%_" else _ESCAPES.get(character, character)
