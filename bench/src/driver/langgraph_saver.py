"""langgraph-checkpoint-sqlite, driven by the bench: reads one command per line, writes one answer per
line, both as JSON.

The peer runs in its best case: the synchronous SqliteSaver on its own connection, messages as plain
dicts (its serialiser writes those natively; message classes take several times as long), no
`put_writes`, and only `put` and `get_tuple` are timed.
"""

import json
import sqlite3
import sys
import time
from importlib.metadata import version

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver


class Conversation:
    """A saver and one thread in it."""

    def __init__(self, db, synchronous):
        self.saver = open_saver(db, synchronous)
        self.parent = {"configurable": {"thread_id": "bench", "checkpoint_ns": ""}}
        self.step = 0

    def put(self, values):
        """Saves one step; returns the milliseconds it took."""
        self.step += 1
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = values
        checkpoint["channel_versions"] = {name: self.step for name in values}
        metadata = {"source": "loop", "step": self.step, "parents": {}}
        began = time.perf_counter()
        self.parent = self.saver.put(
            self.parent, checkpoint, metadata, checkpoint["channel_versions"]
        )
        return (time.perf_counter() - began) * 1000


def open_saver(db, synchronous):
    connection = sqlite3.connect(db, check_same_thread=False)
    if synchronous:
        connection.execute(f"PRAGMA synchronous={synchronous}")
    return SqliteSaver(connection)


def versions(command):
    saver = open_saver(command["db"], None)
    saver.setup()
    synchronous = saver.conn.execute("PRAGMA synchronous").fetchone()[0]
    journal = saver.conn.execute("PRAGMA journal_mode").fetchone()[0]
    saver.conn.close()
    return {
        "package": version("langgraph-checkpoint-sqlite"),
        "base": version("langgraph-checkpoint"),
        "python": sys.version.split()[0],
        "sqlite": sqlite3.sqlite_version,
        "journal": journal,
        "synchronous": synchronous,
    }


def append(command):
    """Saves a conversation again after each of its messages."""
    with open(command["messages"], encoding="utf-8") as file:
        coming = json.load(file)
    conversation = Conversation(command["db"], command.get("synchronous"))
    conversation.saver.setup()
    messages, put_ms = [], []
    for message in coming:
        messages.append(message)
        put_ms.append(conversation.put({"messages": messages}))
    conversation.saver.conn.close()
    return {"put_ms": put_ms}


def static(command):
    """Saves one large value that never changes, and a counter, in every step."""
    with open(command["value"], encoding="utf-8") as file:
        value = json.load(file)
    conversation = Conversation(command["db"], command.get("synchronous"))
    conversation.saver.setup()
    put_ms = [
        conversation.put({"document": value, "counter": step})
        for step in range(1, command["steps"] + 1)
    ]
    conversation.saver.conn.close()
    return {"put_ms": put_ms}


def latest(command):
    """Reads the newest state: with a newly opened saver, then again with the same one.

    Opening counts: the saver defers most of it to its first use.
    """
    config = {"configurable": {"thread_id": "bench"}}
    fresh_ms, warm_ms = [], []
    for _ in range(command["times"]):
        began = time.perf_counter()
        saver = open_saver(command["db"], command.get("synchronous"))
        found = saver.get_tuple(config)
        fresh_ms.append((time.perf_counter() - began) * 1000)
        del found
        began = time.perf_counter()
        found = saver.get_tuple(config)
        warm_ms.append((time.perf_counter() - began) * 1000)
        saver.conn.close()
    messages = found.checkpoint["channel_values"]["messages"]
    return {
        "fresh_ms": fresh_ms,
        "warm_ms": warm_ms,
        "messages": len(messages),
        "last": messages[-1]["content"],
    }


if __name__ == "__main__":
    verbs = {"versions": versions, "append": append, "static": static, "latest": latest}
    for line in sys.stdin:
        command = json.loads(line)
        print(json.dumps(verbs[command["do"]](command)), flush=True)
