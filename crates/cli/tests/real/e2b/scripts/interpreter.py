"""`run_code` of e2b-code-interpreter: state, rich results, errors, contexts."""

import e2b_code_interpreter
from client import KIND, Waited, refused

Sandbox = Waited(e2b_code_interpreter.AsyncSandbox) if KIND == "async" else e2b_code_interpreter.Sandbox
sandbox = Sandbox.create(timeout=300, envs={"GIVEN": "by create"})
assert sandbox.get_info().template_id == "code-interpreter-v1"
run = sandbox.run_code

# State between calls, and what is the last value: a text without its quotes, as E2B tells it.
assert run("x = 40").text is None
done = run("x += 2\nprint('printed', x)\nx")
assert (done.text, done.logs.stdout, done.error) == ("42", ["printed 42\n"], None), done
assert run("import os; os.getcwd()").text == "/home/user"
assert run("os.environ['GIVEN']").text == "by create"
first, second = run("1").execution_count, run("2").execution_count
assert second == first + 1, (first, second)

# As it comes, on both streams.
told = []
done = run(
    "import sys\nfor i in range(3): print(i, flush=True)\nprint('bad', file=sys.stderr)\n'last'",
    on_stdout=lambda message: told.append(("out", message.line)),
    on_stderr=lambda message: told.append(("err", message.line)),
    on_result=lambda result: told.append(("result", result.text)),
)
assert "".join(line for kind, line in told if kind == "out") == "0\n1\n2\n", told
assert ("err", "bad\n") in told and ("result", "last") in told, told
assert "".join(done.logs.stderr) == "bad\n"

# Rich results, each by its kind.
done = run(
    """
from IPython.display import display, HTML, JSON, Markdown, SVG, Image
display(HTML('<b>bold</b>'))
display(Markdown('# head'))
display(JSON({'a': [1, 2]}))
display(SVG('<svg xmlns="http://www.w3.org/2000/svg"/>'))
class Both:
    def _repr_html_(self): return '<i>both</i>'
    def __repr__(self): return 'both'
Both()
"""
)
assert done.error is None, done.error
html, markdown, json, svg, last = done.results
assert html.html == "<b>bold</b>" and not html.is_main_result, html
assert markdown.markdown == "# head" and json.json == {"a": [1, 2]} and "<svg" in svg.svg, done.results
assert (last.html, last.text, last.is_main_result) == ("<i>both</i>", "both", True), last
png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
[picture] = run(f"import base64; display(Image(base64.b64decode('{png}')))").results
assert picture.png.replace("\n", "") == png, picture

# Errors are results, and the kernel lives on.
done = run("x = 7\ndef f(): raise ValueError('no ä')\nf()")
assert (done.error.name, done.error.value) == ("ValueError", "no ä") and "f()" in done.error.traceback, done.error
assert run("this is no python").error.name == "SyntaxError"
assert run("x").text == "7"
seen = []
run("1/0", on_error=seen.append)
assert [error.name for error in seen] == ["ZeroDivisionError"], seen

# Variables of one call are for that call.
assert run("os.environ.get('ONCE')", envs={"ONCE": "here"}).text == "here"
assert run("os.environ.get('ONCE')").text is None or run("print(os.environ.get('ONCE'))").logs.stdout == ["None\n"]

# Much of it.
done = run("print('y' * 2_000_000)")
assert len("".join(done.logs.stdout)) == 2_000_001

# Contexts are apart from each other.
sandbox.commands.run("mkdir -p folder")
context = sandbox.create_code_context(cwd="/home/user/folder")
assert run("import os; os.getcwd()", context=context).text == "/home/user/folder"
assert run("x", context=context).error.name == "NameError"
run("x = 'of the context'", context=context)
assert (run("x").text, run("x", context=context).text) == ("7", "of the context")
known = [known.id for known in sandbox.list_code_contexts()]
assert context.id in known, known
sandbox.restart_code_context(context)
assert run("x", context=context).error.name == "NameError"
sandbox.remove_code_context(context)
assert context.id not in [known.id for known in sandbox.list_code_contexts()]
refused(Exception, run, "1", context=context)

# A call that takes too long is given up, and what runs in the kernel is the machine's own and nobody else's.
refused(Exception, run, "import time; time.sleep(100)", timeout=1)
assert run("open('/home/user/made', 'w').write('by the kernel')").error is None
assert sandbox.files.read("made") == "by the kernel"
assert sandbox.kill()
