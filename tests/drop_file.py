"""Drops a file on a window as a file manager does (XDND 5): drop_file.py TITLE PATH"""

import pathlib
import sys
import time

from Xlib import X, display
from Xlib.protocol import event

TITLE, URI = sys.argv[1], pathlib.Path(sys.argv[2]).resolve().as_uri()
connection = display.Display()
root = connection.screen().root
atom = connection.intern_atom


def find(window):
    for child in window.query_tree().children:
        if TITLE in str(child.get_wm_name() or ""):
            return child
        found = find(child)
        if found:
            return found
    return None


target = find(root)
assert target, f"no window named {TITLE}"
source = root.create_window(0, 0, 1, 1, 0, connection.screen().root_depth)
source.set_selection_owner(atom("XdndSelection"), X.CurrentTime)


def send(kind, data):
    target.send_event(event.ClientMessage(window=target, client_type=atom(kind), data=(32, data)))
    connection.flush()


send("XdndEnter", [source.id, 5 << 24, atom("text/uri-list"), 0, 0])
send("XdndPosition", [source.id, 0, (300 << 16) | 300, X.CurrentTime, atom("XdndActionCopy")])
has_dropped = False
deadline = time.time() + 20
while time.time() < deadline:
    if connection.pending_events() == 0:
        time.sleep(0.02)
        continue
    got = connection.next_event()
    if got.type == X.SelectionRequest:
        got.requestor.change_property(got.property, got.target, 8, (URI + "\r\n").encode())
        got.requestor.send_event(
            event.SelectionNotify(
                time=got.time,
                requestor=got.requestor,
                selection=got.selection,
                target=got.target,
                property=got.property,
            )
        )
        connection.flush()
    elif got.type == X.ClientMessage:
        kind = connection.get_atom_name(got.client_type)
        if kind == "XdndStatus" and not has_dropped:
            has_dropped = True
            send("XdndDrop", [source.id, 0, X.CurrentTime, 0, 0])
        if kind == "XdndFinished":
            sys.exit(0)
sys.exit("the window did not take the file")
