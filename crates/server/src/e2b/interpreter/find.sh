# Becomes the bridge, in the first Python of the sandbox that can run a kernel; says which was looked at where there is none.
# What lies in the home is not taken for a module of Python's.
apart='import sys; sys.path[:1] == [""] and sys.path.pop(0)'
test="$apart"'
import importlib.util, os, sysconfig
managed = os.path.exists(os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED"))
print(sys.executable, "true" if managed and sys.prefix == sys.base_prefix else "false", sep="|")
sys.exit(not all(map(importlib.util.find_spec, ("ipykernel", "jupyter_client"))))
'
first=

try() {
    case $1 in *[\"\\]*) return ;; esac
    [ -x "$1" ] || return
    if said=$("$1" -c "$test" 2>/dev/null </dev/null); then
        exec "${said%|*}" -c "$apart"'; import os; exec(compile(os.environ["ZENO_BRIDGE"], "zeno-interpreter", "exec"))'
    fi
    # One that does not run at all, such as a link to nowhere, says nothing.
    case $said in *[\"\\]*) ;; *) first=${first:-$said} ;; esac
}

[ -n "$VIRTUAL_ENV" ] && try "$VIRTUAL_ENV/bin/python"
try "$(command -v python3)"
try "$(command -v python)"
try "$HOME/.venv/bin/python"
ways=$PATH:/usr/local/bin:/usr/bin
while [ -n "$ways" ]; do
    way=${ways%%:*}
    case $ways in *:*) ways=${ways#*:} ;; *) ways= ;; esac
    for python in "$way"/python3 "$way"/python3.[0-9] "$way"/python3.[0-9][0-9]; do
        try "$python"
    done
done
python=${first%|*}
managed=${first#*|}
printf '{"type": "missing", "python": "%s", "managed": %s, "owner": "%s", "user": "%s"}\n' \
    "$python" "${managed:-false}" "${python:+$(stat -L -c %U "$python")}" "$(id -un)"
