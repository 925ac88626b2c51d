"""What the other tests of the documents read off a page."""

from __future__ import annotations

from tests.unit.docs.documents import code_words, fences, prose, shell_lines

PAGE = """# A page

Words with `code`.

```sh
make one   # a remark
make \\
  two
```

* A point:

  ```sql
  SELECT 1;
  ```
"""


def test_fenced_blocks_are_found_also_in_lists() -> None:
    assert [fence.kind for fence in fences(PAGE)] == ["sh", "sql"]
    assert fences(PAGE, "sql")[0].text == "SELECT 1;\n"


def test_prose_has_no_fenced_block() -> None:
    assert "make" not in prose(PAGE)
    assert code_words(PAGE) == ["code"]


def test_a_shell_block_is_read_line_by_line() -> None:
    assert [line.split() for line in shell_lines(PAGE)] == [["make", "one"], ["make", "two"]]
