"""Ends the process at its end. Threads of the SDK's transport that still run while Python is taken down abort it at times."""

import atexit
import os
import sys

failed = False


def tell(*what):
    global failed
    failed = True
    sys.__excepthook__(*what)


def end():
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(failed)


sys.excepthook = tell
# What is registered first comes last.
atexit.register(end)
