"""The official Python client lists and calls every tool, as an agent would. Arguments: the way in, and the protocol's generation."""

import asyncio
import os
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

FOLDER = os.environ["ZENO_FOLDER"]
asked = []
# What happens while a person reads a question, each time once, and whether they then agree. Without it they do.
while_asked = []


async def agree(_context, question):
    asked.append(question.message)
    agrees = await while_asked.pop(0)() if while_asked else True
    fields = question.requested_schema["properties"]
    return ElicitResult(action="accept" if agrees else "decline", content=dict.fromkeys(fields, True))


def server(way):
    if way == "stdio":
        env = {name: os.environ[name] for name in ("PATH", "HOME", "ZENO_HOME")}
        return StdioServerParameters(command=os.environ["ZENO"], args=["mcp"], env=env, cwd=FOLDER)
    headers = {"Authorization": "Bearer " + os.environ["ZENO_TOKEN"]}
    return streamable_http_client(os.environ["ZENO_URL"], http_client=httpx2.AsyncClient(headers=headers, timeout=60))


class Tools:
    def __init__(self, client):
        self.client, self.called, self.told = client, set(), []

    async def _progress(self, progress, total, message):
        self.told.append(message)

    async def _call(self, name, arguments):
        self.called.add(name)
        return await self.client.call_tool(name, arguments, progress_callback=self._progress)

    async def ok(self, tool, /, **arguments):
        result = await self._call(tool, arguments)
        text = result.content[0].text
        assert not result.is_error, f"{tool}: {text}"
        return result.structured_content, text

    async def refused(self, tool, /, **arguments):
        result = await self._call(tool, arguments)
        assert result.is_error, f"{tool}: {result.content[0].text}"
        return result.structured_content["problem"], result.content[0].text


async def main(way, mode):
    async with Client(server(way), mode=mode, elicitation_callback=agree) as client:
        listed = (await client.list_tools()).tools
        names = [tool.name for tool in listed]
        assert names == sorted(names) and len(names) == len(set(names)), names
        assert all(tool.description and tool.annotations and tool.input_schema for tool in listed)
        tools = Tools(client)
        await throwaway(tools)
        await work(tools, way)
        await hostile(tools)
        assert tools.called == set(names), set(names) - tools.called
        await beside(client)
        print(client.protocol_version, "all", len(names), "tools")


async def throwaway(tools):
    ran, text = await tools.ok("sandbox_run", command="pwd; touch new; exit 3", folder=FOLDER)
    assert ran["exit_code"] == 3 and ran["output"].strip() == FOLDER and "exit code 3" in text, ran
    assert not os.path.exists(FOLDER + "/new")
    long, text = await tools.ok("sandbox_run", command="seq 1 100000", folder=FOLDER)
    assert long["left_out"] > 0 and "bytes left out" in text and len(text) < 40000
    kept, _ = await tools.ok("sandbox_run", command="echo $GREETING > kept", env={"GREETING": "hello"}, folder=FOLDER, keep=True)
    read, _ = await tools.ok("sandbox_read", sandbox=kept["sandbox"], path="kept")
    assert read["content"] == "hello\n", read
    await tools.ok("sandbox_destroy", sandbox=kept["sandbox"])
    slow, _ = await tools.ok("sandbox_run", command="sleep 60", timeout="200ms", folder=FOLDER)
    assert slow["outcome"]["kind"] == "timed-out" and slow["exit_code"] == 124, slow


async def work(tools, way):
    made, _ = await tools.ok("sandbox_create", name="work", folder=FOLDER, limits={"ttl": "1h"})
    box = made["sandbox"]["id"]
    every, _ = await tools.ok("sandbox_list")
    assert box in [sandbox["id"] for sandbox in every["sandboxes"]]
    status, text = await tools.ok("sandbox_status", sandbox="work")
    assert status["sandbox"]["workspace"] == FOLDER and "Nothing in the real folder" in text, text

    await tools.ok("sandbox_write", sandbox=box, path="deep/er/new.txt", content="one\ntwo\nthree\n")
    edited, _ = await tools.ok("sandbox_edit", sandbox=box, path="deep/er/new.txt", search="two\n", replace="2\n")
    assert edited["line"] == 2, edited
    read, _ = await tools.ok("sandbox_read", sandbox=box, path=FOLDER + "/deep/er/new.txt")
    assert read["content"] == "one\n2\nthree\n", read
    files, _ = await tools.ok("sandbox_files", sandbox=box)
    assert "deep" in [entry["name"] for entry in files["entries"]], files

    ran, _ = await tools.ok("sandbox_exec", sandbox=box, command="seq 1 100000; exit 4", cwd="deep")
    assert ran["exit_code"] == 4 and ran["left_out"] > 0, ran
    more, _ = await tools.ok("sandbox_output", sandbox=box, exec=ran["exec"], cursor=ran["next_cursor"])
    assert more["output"] and more["next_cursor"], more
    whole, cursor = "", None
    while True:
        part, _ = await tools.ok("sandbox_output", sandbox=box, exec=ran["exec"], **({"cursor": cursor} if cursor else {}))
        whole, cursor = whole + part["output"], part.get("next_cursor")
        if cursor is None:
            break
    assert whole == "".join(f"{number}\n" for number in range(1, 100001))
    begun, _ = await tools.ok("sandbox_exec", sandbox=box, command="echo up; sleep 1; echo down", background=True)
    ended, _ = await tools.ok("sandbox_output", sandbox=box, exec=begun["exec"], wait="30s")
    assert ended["output"] == "up\ndown\n" and not ended["running"], ended

    await tools.ok("sandbox_exec", sandbox=box, command="rm readme; echo more >> kept.txt")
    diff, _ = await tools.ok("sandbox_diff", sandbox=box)
    assert {change["path"] for change in diff["workspace"]} >= {"readme", "kept.txt", "deep/er/new.txt"}, diff
    patch, _ = await tools.ok("sandbox_diff", sandbox=box, patch=True)
    assert "+more" in patch["patch"] and "deleted file" in patch["patch"], patch

    snapshot, _ = await tools.ok("sandbox_snapshot", sandbox=box, name="good")
    forks, _ = await tools.ok("sandbox_fork", sandbox=box, count=2)
    assert len(forks["forks"]) == 2, forks
    await tools.ok("sandbox_exec", sandbox=box, command="rm -rf *")
    await tools.ok("sandbox_rollback", sandbox=box, snapshot="good")
    read, _ = await tools.ok("sandbox_read", sandbox=box, path="deep/er/new.txt")
    assert read["content"] == "one\n2\nthree\n" and snapshot["snapshot"]["id"], read

    verdict, text = await tools.ok("sandbox_verify", sandbox=box, commands=["test -e deep", "false"])
    assert verdict["outcome"] == "fail" and text.startswith("fail"), text
    assert tools.told, "no progress was told"
    race, text = await tools.ok(
        "sandbox_race",
        **{"from": "good"},
        candidates=[{"name": "bad", "command": "exit 1"}, {"name": "good", "command": "touch won"}],
        commands=["test -e won"],
    )
    assert race["winner"] == "good", text
    network, _ = await tools.ok("network_requests", sandbox=box)
    assert network["requests"] == [], network

    await promote(tools, way, box)
    gone, _ = await tools.ok("sandbox_destroy", sandbox=box)
    assert gone["sandbox"]["state"] == "destroyed", gone


async def promote(tools, way, box):
    planned, text = await tools.ok("sandbox_promote", sandbox=box, dry_run=True)
    assert "create deep/er/new.txt" in text and "delete readme" in text, text
    assert os.path.exists(FOLDER + "/readme")
    if way == "http":
        problem, text = await tools.refused("sandbox_promote", sandbox=box)
        assert problem["code"] == "refused" and "zeno promote" in text and "--allow-promote" in text, text
        assert os.path.exists(FOLDER + "/readme") and not asked
        return
    await refuse(tools, box)
    done, text = await tools.ok("sandbox_promote", sandbox=box)
    assert text.startswith("Promoted.") and "zeno undo" in text, text
    assert len(asked) == 1 and FOLDER in asked[0] and "delete readme" in asked[0], asked
    assert not os.path.exists(FOLDER + "/readme") and open(FOLDER + "/deep/er/new.txt").read() == "one\n2\nthree\n"


async def refuse(tools, box):
    async def no():
        return False

    async def change():
        line = ["exec", box, "--", "sh", "-c", "echo sly > sly.txt"]
        assert await (await asyncio.create_subprocess_exec(os.environ["ZENO"], *line)).wait() == 0
        return True

    # A no is a no, and a yes is to what was shown: a newer client asks again, an older one hears why not.
    is_newer = tools.client.protocol_version >= "2026"
    for happens in [no], [change, no] if is_newer else [change]:
        while_asked.extend(happens)
        problem, _ = await tools.refused("sandbox_promote", sandbox=box)
        assert problem["code"] == "refused" and not while_asked, problem
        assert os.path.exists(FOLDER + "/readme") and not os.path.exists(FOLDER + "/sly.txt")
    assert "sly.txt" in asked[-1] or not is_newer, asked
    await tools.ok("sandbox_exec", sandbox=box, command="rm sly.txt")
    asked.clear()


async def hostile(tools):
    problem, text = await tools.refused("sandbox_status", sandbox="nobody")
    assert problem["code"] == "not_found", text
    made, _ = await tools.ok("sandbox_create")
    box = made["sandbox"]["id"]
    problem, text = await tools.refused("sandbox_edit", sandbox=box, path="/etc/passwd", search="no such text", replace="")
    assert problem["code"] == "not_found" and "what to do" in text, text
    problem, _ = await tools.refused("sandbox_read", sandbox=box, path="/no/such/file")
    assert problem["code"] == "not_found", problem
    problem, text = await tools.refused("sandbox_exec", sandbox=box, command="true", cwd="/no/such/folder")
    assert problem["code"] == "bad_request" and "/no/such/folder" in text, text
    problem, _ = await tools.refused("sandbox_files", sandbox=box, cursor="x")
    assert problem["code"] == "bad_request", problem
    problem, _ = await tools.refused("sandbox_create", network="all of it")
    assert problem["code"] == "bad_request", problem
    problem, _ = await tools.refused("sandbox_create", network="host")
    assert problem["code"] == "refused", problem
    misspelt = await tools.client.call_tool("sandbox_exec", {"sandbox": box, "comand": "true"})
    assert misspelt.is_error, misspelt
    await tools.ok("sandbox_write", sandbox=box, path="/tmp/../tmp/a\n ü", content="\u0000\u00ff")
    odd, _ = await tools.ok("sandbox_read", sandbox=box, path="/tmp/a\n ü")
    assert odd["binary"] is True, odd
    await tools.ok("sandbox_destroy", sandbox=box)


async def beside(client):
    templates = (await client.list_resource_templates()).resource_templates
    assert [template.uri_template for template in templates] == [
        "zeno://sandboxes/{sandbox}/diff",
        "zeno://sandboxes/{sandbox}/logs",
        "zeno://sandboxes/{sandbox}/events",
    ]
    resources = (await client.list_resources()).resources
    assert resources, "the forks are still there"
    for resource in resources[:3]:
        read = await client.read_resource(resource.uri)
        assert read.contents[0].uri == resource.uri
    prompts = (await client.list_prompts()).prompts
    prompt = await client.get_prompt(prompts[0].name)
    assert "sandbox_promote" in prompt.messages[0].content.text


asyncio.run(asyncio.wait_for(main(*sys.argv[1:]), 300))
