"""Stands in for the read side's process: asks one question in each life, and notes the answers.

Its first life ends as soon as it has asked. Both lives number their question as 1.
"""

import os
import socket
import sys
from pathlib import Path

import msgspec

from yunikorn_actors.service.rest.pipe import LENGTH_BYTES, Answered, Down, Question, Ready, frame

FOLDER = "ASKING_CHILD"
"""The variable with the place for what it notes."""
ANSWERS = "answers"
FIRST, SECOND = "first", "second"


def main(line: str) -> None:
    folder = Path(os.environ[FOLDER])
    asked = SECOND if (folder / FIRST).exists() else FIRST
    with socket.socket(fileno=int(line)) as talk, talk.makefile("rwb") as file:
        file.write(frame(Ready()) + frame(Question(1, asked, ())))
        file.flush()
        (folder / asked).touch()
        if asked == FIRST:
            return
        while head := file.read(LENGTH_BYTES):
            entry = msgspec.msgpack.decode(file.read(int.from_bytes(head, "big")), type=Down)
            if isinstance(entry, Answered):
                with (folder / ANSWERS).open("a", encoding="utf-8") as answers:
                    answers.write(f"{entry.number} {entry.value}\n")


if __name__ == "__main__":
    main(sys.argv[1])
