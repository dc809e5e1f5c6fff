#!/usr/bin/env python3
"""A file system that shows a folder, read-only, as a slow disk would: every read waits first.

    slow_disk.py FOLDER MOUNT --wait SECONDS

Runs in the foreground until it is unmounted (fusermount3 -u MOUNT). Needs Debian's python3-fusepy and fuse3. Files are
read from it anew each time they are opened, so that no page cache hides the wait.
"""
import argparse
import os
import time

from fusepy import FUSE, Operations


class SlowDisk(Operations):
    def __init__(self, folder: str, wait: float):
        self.folder, self.wait = folder, wait

    def _path(self, path: str) -> str:
        return os.path.join(self.folder, path.lstrip("/"))

    def getattr(self, path, handle=None):
        state = os.lstat(self._path(path))
        return {name: getattr(state, name) for name in dir(state) if name in self.SHOWN}

    SHOWN = {"st_mode", "st_size", "st_mtime", "st_atime", "st_ctime", "st_nlink", "st_uid", "st_gid"}

    def readdir(self, path, handle):
        return [".", "..", *os.listdir(self._path(path))]

    def open(self, path, flags):
        return os.open(self._path(path), flags)

    def read(self, path, size, offset, handle):
        time.sleep(self.wait)
        return os.pread(handle, size, offset)

    def release(self, path, handle):
        os.close(handle)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("folder")
    options.add_argument("mount")
    options.add_argument("--wait", type=float, default=0.03, help="seconds before each read")
    asked = options.parse_args()
    FUSE(SlowDisk(os.path.realpath(asked.folder), asked.wait), asked.mount, foreground=True, ro=True)
