"""Runs a script and leaves when it has ended. The SDKs' transport, which is no Python, now and then aborts while Python takes itself
apart: that is after all that is tested, and nothing of ours."""

import os
import runpy
import sys
import traceback

sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(sys.argv[0])
code = 0
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
except SystemExit as end:
    code = end.code if isinstance(end.code, int) else int(end.code is not None)
except BaseException:
    traceback.print_exc()
    code = 1
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)
