"""The zip around a planner's workbook: read with care, and written again with nothing but the named parts changed.

A changed part takes the place of the old one among the bytes of the file; every other member, with its header,
its compressed bytes and its entry in the directory, stays as it is but for the place where it begins.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from xml.parsers import expat

from ..presets.names import one_line, shown

MAX_PARTS = 2000
MAX_UNPACKED = 200 * 2**20
MAX_RATIO = 200
RATIO_COUNTS_FROM = 2**20  # a short part of blanks packs better than any bomb and does no harm

_OLE = bytes.fromhex("D0CF11E0A1B11AE1")
_END, _RECORD, _LOCAL = b"PK\x05\x06", b"PK\x01\x02", b"PK\x03\x04"
_END_SIZE, _RECORD_SIZE, _LOCAL_SIZE = 22, 46, 30
_LONGEST_COMMENT = 0xFFFF
_ZIP64 = 0xFFFFFFFF
_LOCKED, _DESCRIBED_LATER = 0x2041, 0x0008  # flag bits: any form of encryption; sizes stand behind the data
_STORED, _DEFLATED = 0, 8
_ZIP64_FIELD = 1

COPY = "use a copy that Excel opens without a repair"
AGAIN = "open it in Excel, save it under a new name as .xlsx and use that file"


class Member(NamedTuple):
    """One part of the zip. header, start, stop: bytes at which its header, its data and what follows begin.

    packed, size: bytes, compressed and not. record: byte at which its entry in the directory begins.
    """

    name: str
    header: int
    start: int
    stop: int
    packed: int
    size: int
    check: int
    method: int
    record: int


class Archive:
    """The parts of a zip that is held in memory. Raises ValueError where it is damaged or too large to be meant."""

    def __init__(self, data: bytes, where: str) -> None:
        self.data, self.where = data, where
        self._end = self._find_end()
        self.members = self._read_directory()
        self._named = {member.name.casefold(): member for member in self.members}
        if len(self._named) < len(self.members):
            names = [member.name.casefold() for member in self.members]
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"{where} holds the part {shown(twice)} twice; each part should be there once: {AGAIN}")

    def __contains__(self, name: str) -> bool:
        return name.casefold() in self._named

    def names(self) -> list[str]:
        """The names of the parts, in the order of the directory."""
        return [member.name for member in self.members]

    def read(self, name: str) -> bytes:
        """A part's bytes, unpacked: never more than its entry says, whose sum is limited. Case does not count."""
        member = self._named.get(name.casefold())
        if member is None:
            raise ValueError(f"{self.where} lacks the part {shown(name)}; it is damaged: {AGAIN}")
        packed = self.data[member.start : member.start + member.packed]
        unpacked = packed
        if member.method == _DEFLATED:
            stream = zlib.decompressobj(-zlib.MAX_WBITS)
            try:
                unpacked = stream.decompress(packed, member.size + 1)
            except zlib.error:
                unpacked = b""
        if len(unpacked) != member.size or zlib.crc32(unpacked) != member.check:
            raise ValueError(
                f"{self.where} is damaged: its part {shown(member.name)} is not what the directory says; {COPY}"
            )
        return unpacked

    def verify(self) -> None:
        """Unpack every part once, so that damage or a false size is found before any work."""
        for member in self.members:
            self.read(member.name)

    def replaced(self, parts: Mapping[str, bytes]) -> bytes:
        """The bytes of the zip with these parts in place of the old ones; all else is copied as it is."""
        new = {self._named[name.casefold()].name: content for name, content in parts.items()}
        directory = struct.unpack_from("<L", self.data, self._end + 16)[0]
        ending = bytearray(self.data[directory:])
        pieces: list[bytes] = []
        copied = shift = 0
        for member in sorted(self.members, key=lambda member: member.header):
            record = member.record - directory
            struct.pack_into("<L", ending, record + 42, member.header + shift)
            if member.name not in new:
                continue
            body, packed = self._member_bytes(member, new[member.name])
            pieces += [self.data[copied : member.header], body]
            copied = member.stop
            shift += len(body) - (member.stop - member.header)
            flags = struct.unpack_from("<H", ending, record + 8)[0] & ~_DESCRIBED_LATER
            struct.pack_into("<H", ending, record + 8, flags)
            content = new[member.name]
            struct.pack_into("<3L", ending, record + 16, zlib.crc32(content), packed, len(content))
        struct.pack_into("<L", ending, self._end - directory + 16, directory + shift)
        return b"".join([*pieces, self.data[copied:directory], bytes(ending)])

    def _member_bytes(self, member: Member, content: bytes) -> tuple[bytes, int]:
        """A member with new content: its header and data, and the size of the data."""
        packed = content
        if member.method == _DEFLATED:
            stream = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
            packed = stream.compress(content) + stream.flush()
        header = bytearray(self.data[member.header : member.header + _LOCAL_SIZE])
        name_size, extra_size = struct.unpack_from("<2H", header, 26)
        named = member.header + _LOCAL_SIZE + name_size
        extra = _without_zip64(self.data[named : named + extra_size])
        flags = struct.unpack_from("<H", header, 6)[0] & ~_DESCRIBED_LATER
        struct.pack_into("<H", header, 6, flags)
        struct.pack_into("<3L2H", header, 14, zlib.crc32(content), len(packed), len(content), name_size, len(extra))
        return bytes(header) + self.data[member.header + _LOCAL_SIZE : named] + extra + packed, len(packed)

    def _damaged(self, why: str) -> NoReturn:
        raise ValueError(f"{self.where} is no whole .xlsx workbook: {why}; use a copy that Excel opens")

    def _find_end(self) -> int:
        """The byte at which the end record begins."""
        data = self.data
        at = len(data)
        while (at := data.rfind(_END, max(0, len(data) - _END_SIZE - _LONGEST_COMMENT), at)) >= 0:
            if at + _END_SIZE <= len(data):
                comment = struct.unpack_from("<H", data, at + 20)[0]
                if at + _END_SIZE + comment == len(data):
                    return at
        return self._damaged("it is cut short" if data.startswith(_LOCAL) else "it is no zip file")

    def _read_directory(self) -> list[Member]:
        data = self.data
        disk, disk_too, here, count, size, directory = struct.unpack_from("<4H2L", data, self._end + 4)
        if _ZIP64 in (size, directory) or count == 0xFFFF or data[max(0, self._end - 20) :].startswith(b"PK\x06\x07"):
            raise ValueError(f"{self.where} is packed as a zip of more than 4 GB, which no workbook needs: {AGAIN}")
        if disk or disk_too or here != count or directory + size != self._end:
            self._damaged("its parts are not where its directory says")
        if count > MAX_PARTS:
            raise ValueError(f"{self.where} holds {count:,} parts; a workbook may have at most {MAX_PARTS:,}")
        members = []
        at = directory
        for _ in range(count):
            if at + _RECORD_SIZE > self._end or data[at : at + 4] != _RECORD:
                self._damaged("its directory is cut short")
            members.append(self._read_record(at))
            at += _RECORD_SIZE + sum(struct.unpack_from("<3H", data, at + 28))
        if at != self._end:
            self._damaged("its directory has something behind it")
        total = sum(member.size for member in members)
        if total > MAX_UNPACKED:
            raise ValueError(
                f"{self.where} unpacks to {total:,} bytes; a workbook may have at most {MAX_UNPACKED:,} to be used here"
            )
        last = 0
        for member in sorted(members, key=lambda member: member.header):
            if member.header < last:
                self._damaged("two of its parts overlap")
            last = member.stop
        if last > directory:
            self._damaged("a part runs into its directory")
        return members

    def _read_record(self, at: int) -> Member:
        data = self.data
        flags, method = struct.unpack_from("<2H", data, at + 8)
        check, packed, size, name_size = struct.unpack_from("<3LH", data, at + 16)
        header = struct.unpack_from("<L", data, at + 42)[0]
        raw = data[at + _RECORD_SIZE : at + _RECORD_SIZE + name_size]
        try:
            name = raw.decode("utf-8" if flags & 0x800 else "cp437")
        except UnicodeDecodeError:
            self._damaged("the name of a part is not text")
        if flags & _LOCKED:
            raise ValueError(f"{self.where} is a zip with a password; remove the password and use that file")
        if method not in (_STORED, _DEFLATED):
            self._damaged(f"its part {shown(name)} is packed by method {method}, which workbooks do not use")
        if header + _LOCAL_SIZE > len(data) or data[header : header + 4] != _LOCAL:
            self._damaged(f"its part {shown(name)} is not where its directory says")
        local_name, extra = struct.unpack_from("<2H", data, header + 26)
        start = header + _LOCAL_SIZE + local_name + extra
        if data[header + _LOCAL_SIZE : header + _LOCAL_SIZE + local_name] != raw:
            self._damaged(f"its part {shown(name)} has two names")
        if size > RATIO_COUNTS_FROM and size > MAX_RATIO * packed:
            raise ValueError(
                f"{self.where} packs {size:,} bytes of its part {shown(name)} into {packed:,}; "
                f"a workbook's parts shrink to a {MAX_RATIO}th at most"
            )
        stop = start + packed
        if flags & _DESCRIBED_LATER:
            stop += self._descriptor(stop, check, packed, size)
        return Member(name, header, start, stop, packed, size, check, method, at)

    def _descriptor(self, at: int, check: int, packed: int, size: int) -> int:
        """The length of the sizes that stand behind a member's data, in any of the forms that are in use."""
        for form in ("<3L", "<L2Q"):
            plain = struct.pack(form, check, packed, size)
            for record in (b"PK\x07\x08" + plain, plain):
                if self.data.startswith(record, at):
                    return len(record)
        return 0


def _without_zip64(extra: bytes) -> bytes:
    """The extra fields of a header but for large sizes, which would contradict those written now."""
    kept, at = b"", 0
    while at + 4 <= len(extra):
        kind, size = struct.unpack_from("<2H", extra, at)
        if kind != _ZIP64_FIELD:
            kept += extra[at : at + 4 + size]
        at += 4 + size
    return kept + extra[at:]


def read_workbook(path: Path, where: str) -> bytes:
    """The bytes of a file that may be an .xlsx. Raises ValueError, one sentence, for what it cannot be.

    where: the file as sentences name it.
    """
    try:
        size = path.stat().st_size
        if size > MAX_UNPACKED:
            raise ValueError(f"{where} is {size:,} bytes long; a workbook may have at most {MAX_UNPACKED:,}")
        data = path.read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise ValueError(
            f"{where} cannot be read ({reason}); close it in other programs and see that you may read it"
        ) from error
    if data.startswith(_OLE):
        if "EncryptedPackage".encode("utf-16-le") in data:
            raise ValueError(f"{where} is encrypted with a password; remove the password in Excel and save it again")
        raise ValueError(f"{where} is in the old .xls form, whatever its name; save it as .xlsx in Excel and use that")
    return data


def find_workbook(path: Path, where: str) -> Path:
    """The file that a path or a link leads to. Raises ValueError where there is none."""
    if path.is_dir():
        raise ValueError(f"{where} is a folder; name the .xlsx or .xlsm workbook itself")
    if not path.exists():
        raise ValueError(f"{where} is not there; name an .xlsx or .xlsm workbook that exists")
    if not path.is_file():
        raise ValueError(f"{where} is not a file; name an .xlsx or .xlsm workbook")
    return path.resolve()


def owner_file(path: Path) -> Path | None:
    """The file by which Excel or LibreOffice says that it has the workbook open, if there is one."""
    for name in (f"~${path.name}", f".~lock.{path.name}#"):
        if (owner := path.with_name(name)).exists():
            return owner
    return None


def open_elsewhere(where: str, owner: Path) -> str:
    """The sentence for a workbook that another program has open."""
    return (
        f"{where} is open in {'Excel' if owner.name.startswith('~$') else 'LibreOffice'}; save and close it there "
        f"(if no program has it open, delete the left-over {one_line(owner.name)})"
    )


def check_writable(path: Path, where: str, *, held: bool = False) -> None:
    """Raise ValueError unless the file and its folder may be written. The mode bits count even for root.

    held: another program is known to have the file, which is no fault then.
    """
    folder = path.parent
    if not path.stat().st_mode & 0o222 or not os.access(path, os.W_OK):
        raise ValueError(f"{where} is read-only; make the file writable, or use a copy")
    if not folder.stat().st_mode & 0o222 or not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(
            f"{where} is in a folder that cannot be written ({one_line(str(folder))}); copy it to one that can"
        )
    if held:
        return
    try:
        # Windows says only now that another program holds the file; nothing is changed by it.
        with path.open("r+b"):
            pass
    except OSError as error:
        raise ValueError(
            f"{where} cannot be opened for writing ({error.strerror}); close it in other programs"
        ) from error


class Events:
    """An expat parser for one part that refuses document types, entities and encodings other than UTF-8.

    spaced: names come as "namespace local"; else as they are written.
    """

    def __init__(self, data: bytes, where: str, *, spaced: bool = True) -> None:
        self.data, self.where = data, where
        self.parser = expat.ParserCreate(namespace_separator=" " if spaced else None)
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.XmlDeclHandler = self._declaration

    def run(
        self,
        start: Callable[[str, dict[str, str]], Any],
        end: Callable[[str], Any] | None = None,
        text: Callable[[str], Any] | None = None,
    ) -> None:
        """Go through the part. Raises ValueError where it is no plain XML in UTF-8."""
        if self.data[:2] in (b"\xfe\xff", b"\xff\xfe"):
            self._declaration("1.0", "UTF-16", -1)
        self.parser.StartElementHandler = start
        if end:
            self.parser.EndElementHandler = end
        if text:
            self.parser.CharacterDataHandler = text
        try:
            self.parser.Parse(self.data, True)
        except expat.ExpatError as error:
            raise ValueError(f"{self.where} is damaged ({expat.ErrorString(error.code)}): {AGAIN}") from None

    @property
    def at(self) -> int:
        """The byte at which the present tag begins; for the end of an empty element, the byte behind it."""
        return self.parser.CurrentByteIndex

    def _doctype(self, *_: Any) -> None:
        raise ValueError(f"{self.where} declares a document type, which no workbook needs: {AGAIN}")

    def _declaration(self, _version: str, encoding: str | None, _standalone: int) -> None:
        if encoding and encoding.upper() not in ("UTF-8", "US-ASCII", "ASCII"):
            raise ValueError(f"{self.where} is written in {one_line(encoding)}, not in UTF-8: {AGAIN}")
