"""Landlock by system call: what a child may read and write of the file system, without any privilege.

The rules are made in the parent, so that the child calls only two system calls between fork and exec. Numbers and
bits are those of linux/landlock.h; the kernel's answer to the version question says which it knows.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_ASK_VERSION = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIRECTORY = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_READ = _EXECUTE | _READ_FILE | _READ_DIRECTORY

_SCOPED = 0b11
"""No signal to a process outside, and no abstract socket of one (version 6)."""


def version() -> int:
    """Which version of Landlock the kernel offers, 0 if it has none or it is switched off."""
    answer: int = _libc.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION))
    return max(answer, 0)


def _handled(abi: int) -> int:
    bits = 13
    for since, count in ((2, 14), (3, 15), (5, 16)):
        if abi >= since:
            bits = count
    return (1 << bits) - 1


class Ruleset:
    """Rules that a child can put itself under; close it once the child has started.

    `readable` paths may be read and executed, `writable` ones used in every way; those that do not exist are passed
    over. Raises OSError if the kernel has no Landlock.
    """

    def __init__(self, readable: Iterable[Path], writable: Iterable[Path]) -> None:
        abi = version()
        self._handled = _handled(abi)
        attributes = struct.pack("=QQQ", self._handled, 0, _SCOPED if abi >= 6 else 0)
        # Kernels take a longer structure than they know as long as the rest of it is zero.
        self._descriptor = _checked(
            _libc.syscall(_CREATE, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
        )
        try:
            for path in readable:
                self._allow(path, _READ)
            for path in writable:
                self._allow(path, self._handled)
        except BaseException:
            self.close()
            raise

    def _allow(self, path: Path, access: int) -> None:
        try:
            beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            allowed = access & self._handled & (~0 if path.is_dir() else _OF_FILES)
            rule = struct.pack("=Qi", allowed, beneath)
            _checked(_libc.syscall(_ADD, self._descriptor, _PATH_BENEATH, rule, ctypes.c_uint32(0)))
        finally:
            os.close(beneath)

    def restrict(self) -> None:
        """Put the calling process, for good, under these rules; for use between fork and exec."""
        _checked(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
        _checked(_libc.syscall(_RESTRICT, self._descriptor, ctypes.c_uint32(0)))

    def close(self) -> None:
        """Free the descriptor; a child that is under the rules stays under them."""
        os.close(self._descriptor)


def _checked(answer: int) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return answer
