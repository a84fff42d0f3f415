"""Python functions that call functions of C, each another number of times: by a name that `write` tells.

The program says `ready` on its standard output and goes on when a line comes. Without an input it goes on at
once.
"""

import os
import sys
import threading
import zlib

reading, writing = os.pipe()


class Srv:
    def hash(self, times):
        for _ in range(times):
            os.write(writing, b"7")

    def größe(self, times):
        for _ in range(times):
            os.write(writing, b"7")


def outer(times):
    def inner():
        for _ in range(times):
            os.write(writing, b"7")

    inner()


def checked(times):
    # So small that the global lock is held.
    for _ in range(times):
        zlib.crc32(b"7")


def released(times):
    data = b"7" * (1 << 16)
    for _ in range(times):
        zlib.crc32(data)


def work():
    server = Srv()
    parts = [(server.hash, 31), (server.größe, 17), (outer, 11), (checked, 23), (released, 7)]
    threads = [threading.Thread(target=part, args=(times,)) for part, times in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # In the first thread, too.
    outer(5)


if __name__ == "__main__":
    print("ready", flush=True)
    sys.stdin.readline()
    work()
    if "fork" in sys.argv:
        child = os.fork()
        if child == 0:
            Srv().hash(3)
            os._exit(0)
        os.waitpid(child, 0)
