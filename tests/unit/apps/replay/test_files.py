"""JSON values read from plain and compressed files, and the errors for other files."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from recorded_transcripts import a_file, lines

from inmind.apps.replay import files
from inmind.apps.replay.files import TORN_LINES, read_content
from inmind.errors import InvalidInput, NotFound

pytestmark = pytest.mark.spec("I8")


def compress_in_frames(data: bytes) -> bytes:
    half = len(data) // 2
    return zstandard.compress(data[:half]) + zstandard.compress(data[half:])


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress, compress_in_frames])
def test_the_compression_of_a_file_is_detected_from_its_bytes(tmp_path: Path, pack: type[bytes]) -> None:
    content = read_content(a_file(tmp_path, pack(b'{"a": [1, 2]}'), name="no-ending"))
    assert [placed.value for placed in content.values] == [{"a": [1, 2]}]


def test_line_numbers_count_blank_lines_and_ignore_unicode_separators(tmp_path: Path) -> None:
    path = a_file(tmp_path, '{"a": 1}\n\n"one\u2028line"\r\n'.encode())
    content = read_content(path)
    assert content.by_line
    assert [(placed.value, placed.location) for placed in content.values] == [
        ({"a": 1}, f"{path}:1"),
        ("one\u2028line", f"{path}:3"),
    ]


def test_a_value_over_many_lines_is_one_value(tmp_path: Path) -> None:
    content = read_content(a_file(tmp_path, b'\xef\xbb\xbf[\n  {"a": 1}\n]\n'))
    assert (content.by_line, [placed.value for placed in content.values]) == (False, [[{"a": 1}]])


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"[1]")))
    (placed,) = read_content("-").values
    assert (placed.value, placed.location) == ([1], "<stdin>")


@pytest.mark.parametrize(
    ("data", "line", "expected"),
    [
        (lines([{"a": 1}, {"a": 2}]) + b'{"a": \n{"a": 4}\n', 3, "JSON"),
        (b'{\n  "a": 1,\n  b\n}', 3, "JSON"),
        (b'{"a": 1}\n"\xff"\n1\n', 2, "UTF-8"),
        (b'{"a": 1}\n' + b"[" * 100_000 + b"\n1\n", 2, "within Python's limits"),
        (b'{"a": 1}\n' + b"1" * 10_000 + b"\n1\n", 2, "within Python's limits"),
        (b'{"a": 1}\n{"a": \n{"a"', 2, "JSON"),
        (b'{"a": ', 1, "JSON"),
    ],
    ids="line value byte depth number two-lines only-line".split(),
)
def test_an_unreadable_value_is_refused_with_its_file_and_line(
    tmp_path: Path, data: bytes, line: int, expected: str
) -> None:
    path = a_file(tmp_path, data)
    with pytest.raises(InvalidInput) as caught:
        read_content(path)
    assert caught.value.field == f"{path}:{line}"
    assert expected in caught.value.expected


WRITTEN = '{"a": 1}\n\n{"a": "caf\u00e9"}'.encode()


@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n"], ids="here newline blank-line".split())
@pytest.mark.parametrize("length", range(WRITTEN.rindex(b"\n") + 2, len(WRITTEN)))
def test_an_incomplete_last_line_is_left_out_and_counted(tmp_path: Path, length: int, end: bytes) -> None:
    torn_in_a_character = WRITTEN[length - 1] == 0xC3
    content = read_content(a_file(tmp_path, WRITTEN[:length] + (b"" if torn_in_a_character else end)))
    assert content.by_line
    assert [placed.value for placed in content.values] == [{"a": 1}]
    assert content.left_out == {TORN_LINES: 1}


def test_a_complete_last_line_is_kept_without_its_newline(tmp_path: Path) -> None:
    content = read_content(a_file(tmp_path, WRITTEN))
    assert ([placed.value for placed in content.values][1:], content.left_out) == ([{"a": "café"}], {})


@pytest.mark.parametrize(
    "data",
    [b"", b" \n\n", gzip.compress(b"[1]" * 1000, mtime=0)[:-9], zstandard.compress(b"[1]" * 1000)[:8] + b"x"],
    ids="empty blank gzip zstd".split(),
)
def test_an_empty_or_broken_file_is_refused(tmp_path: Path, data: bytes) -> None:
    path = a_file(tmp_path, data)
    with pytest.raises(InvalidInput) as caught:
        read_content(path)
    assert caught.value.field.startswith(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        read_content(str(tmp_path / "nothing.json"))
    os.mkfifo(tmp_path / "pipe")  # opening it would block until a writer opens it
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(InvalidInput, match="a regular file, or - for standard input"):
            read_content(str(path))


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_the_decompressed_size_is_limited(
    tmp_path: Path, pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "SLACK_BYTES", 10_000)
    honest = json.dumps([{"role": "user", "content": "hi"}]).encode()
    assert read_content(a_file(tmp_path, pack(honest))).values
    with pytest.raises(InvalidInput, match="at most"):
        read_content(a_file(tmp_path, pack(b" " * 30_000_000 + honest)))


def test_a_file_over_the_size_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 1_000)
    with pytest.raises(InvalidInput, match="at most 1,000 bytes"):
        read_content(a_file(tmp_path, b"[" + b" " * 1_000 + b"]"))


def test_without_zstandard_a_compressed_file_is_refused_with_the_package_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = a_file(tmp_path, zstandard.compress(b"[1]"))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(InvalidInput, match=r'pip install "inmind\[cli\]"'):
        read_content(path)
