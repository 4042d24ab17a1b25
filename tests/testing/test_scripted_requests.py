"""Every request is kept as it came, a client that leaves is noticed, and a test can wait for both
without sleeping."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import zlib

import pytest

from hotset.testing import Clock, Say, ScriptedUpstream
from hotset.testing.upstream import Gate, Hold, Silence, free_port
from hotset.testing.upstream.script import read_script, zstd
from tests.testing.raw_http import PATHS, ask, connect, prompt, read_exchange, request_bytes


def test_a_request_is_kept_byte_for_byte():
    clock = Clock(1234.5)
    with ScriptedUpstream(now=clock) as upstream, connect(upstream) as client:
        body = b'{ "model":"m",\n "messages" : [{"role":"user","content":"caf\\u00e9"}] }'
        client.sendall(
            request_bytes("/v1/messages?beta=true", body, ["X-Odd:  spaced ", "x-odd: twice"])
        )
        read_exchange(client)
        (seen,) = upstream.requests
    assert (seen.method, seen.path, seen.body, seen.arrived) == (
        "POST",
        "/v1/messages?beta=true",
        body,
        1234.5,
    )
    assert [pair for pair in seen.headers if pair[0].lower() == "x-odd"] == [
        ("X-Odd", "spaced"),
        ("x-odd", "twice"),
    ]
    assert seen.dialect == "anthropic"


def test_a_chunked_request_is_put_together():
    with ScriptedUpstream() as upstream, connect(upstream) as client:
        client.sendall(b"POST /v1/messages HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n")
        client.sendall(b'4\r\n{"a"\r\n')
        client.sendall(b"3;ext=1\r\n:1}\r\n0\r\nx-trailer: 1\r\n\r\n")
        read_exchange(client)
        assert upstream.requests[0].body == b'{"a":1}'


@pytest.mark.parametrize(
    ("coding", "pack"),
    [
        ("gzip", gzip.compress),
        ("zstd", zstd.compress),
        ("deflate", zlib.compress),
        ("deflate", lambda body: zlib.compress(body, wbits=-15)),
    ],
)
def test_compressed_requests_are_understood_and_kept_compressed(coding, pack):
    packed = pack(json.dumps(prompt("openai-chat", stream=False)).encode())
    with ScriptedUpstream() as upstream, connect(upstream) as client:
        client.sendall(request_bytes(PATHS["openai-chat"], packed, [f"content-encoding: {coding}"]))
        assert b"Message 1 said: hello" in read_exchange(client).body
        assert upstream.requests[0].body == packed
        assert upstream.requests[0].json()["model"] == "test-model"


def test_a_body_that_is_no_json_is_refused_in_the_dialects_own_words():
    with ScriptedUpstream() as upstream, connect(upstream) as client:
        client.sendall(request_bytes("/v1/messages", b"{nope"))
        refused = read_exchange(client)
    assert refused.status == 400
    assert json.loads(refused.body)["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    "sent",
    [b"nonsense\r\n\r\n", b"POST / HTTP/1.1\r\ncontent-length: many\r\n\r\n", b"\x16\x03\x01"],
    ids=["words", "length", "TLS"],
)
def test_what_is_no_http_is_refused(sent):
    with ScriptedUpstream() as upstream, connect(upstream) as client:
        client.sendall(sent)
        assert read_exchange(client).status == 400
        assert upstream.requests == ()


def test_any_other_path_says_back_the_request():
    with ScriptedUpstream() as upstream, connect(upstream) as client:
        client.sendall(request_bytes("/v1/embeddings?x=1", b'{"input":"a"}', ["x-mine: 7"]))
        echoed = json.loads(read_exchange(client).body)
    assert (echoed["method"], echoed["path"], echoed["body"]) == (
        "POST",
        "/v1/embeddings?x=1",
        '{"input":"a"}',
    )
    assert ["x-mine", "7"] in echoed["headers"]


def test_one_connection_serves_many_requests():
    with ScriptedUpstream() as upstream, connect(upstream) as client:
        for _ in range(3):
            client.sendall(request_bytes("/v1/messages", prompt("anthropic")))
            assert read_exchange(client).ending == "kept"
        assert [seen.index for seen in upstream.requests] == [0, 1, 2]
        assert all(upstream.wait_for_end(index).ended for index in range(3))


def test_a_client_that_leaves_before_the_first_byte_is_noticed():
    with ScriptedUpstream([Say("never", fault=Silence(60))]) as upstream:
        with connect(upstream) as client:
            client.sendall(request_bytes("/v1/messages", prompt("anthropic")))
            (waiting,) = upstream.wait_for_requests(1)
            assert waiting.cancelled_after is None
        left = upstream.wait_for_cancel(0)
        assert 0 <= left.cancelled_after < 30
        assert not left.ended


def test_a_client_that_leaves_in_the_middle_of_a_stream_is_noticed():
    with ScriptedUpstream([Say("half of this", fault=Hold(Gate(), events=2))]) as upstream:
        with connect(upstream) as client:
            client.sendall(request_bytes("/v1/messages", prompt("anthropic")))
            assert client.recv(10)
        assert upstream.wait_for_cancel().cancelled_after is not None


def test_a_gate_holds_a_reply_until_the_test_opens_it():
    gate = Gate()
    with (
        ScriptedUpstream([Say("at last", fault=Hold(gate))]) as upstream,
        connect(upstream) as client,
    ):
        client.sendall(request_bytes("/v1/messages", prompt("anthropic", stream=False)))
        upstream.wait_for_requests(1)
        gate.open()
        assert b"at last" in read_exchange(client).body


def test_a_gate_may_open_after_everyone_has_left():
    gate = Gate()
    with ScriptedUpstream([Say("never", fault=Hold(gate))]) as upstream:
        with connect(upstream) as client:
            client.sendall(request_bytes("/v1/messages", prompt("anthropic")))
            upstream.wait_for_requests(1)
        upstream.wait_for_cancel()
    gate.open()


def test_waiting_for_what_does_not_come_says_what_did():
    with ScriptedUpstream() as upstream, pytest.raises(TimeoutError, match="2 requests; saw 0"):
        upstream.wait_for_requests(2, timeout=0.01)


def test_a_script_that_has_run_out_says_so():
    with ScriptedUpstream([Say("only")]) as upstream:
        assert ask(upstream).status == 200
        over = ask(upstream)
    assert over.status == 500
    assert b"The script has no reply left for request 1." in over.body


def test_a_script_that_fails_says_so():
    with ScriptedUpstream(lambda request: Say(request.json()["nothing"])) as upstream:
        failed = ask(upstream)
    assert failed.status == 500
    assert b"The script failed: KeyError('nothing')" in failed.body


def test_connections_are_refused_while_it_refuses_and_served_again_after():
    with ScriptedUpstream() as upstream:
        with upstream.refusing(), pytest.raises(ConnectionRefusedError):
            connect(upstream)
        assert ask(upstream).status == 200


def test_nobody_listens_on_a_free_port():
    assert 0 < free_port() < 65536


def test_a_taken_port_is_an_error_and_leaves_nothing_behind():
    with ScriptedUpstream() as upstream, pytest.raises(OSError, match="address already in use"):
        ScriptedUpstream(port=upstream.port).start()


def test_as_a_process_it_says_where_it_is_and_plays_a_script_from_a_file(tmp_path):
    script, ready = tmp_path / "script.jsonl", tmp_path / "ready.json"
    script.write_text('{"text": "from a file"}\n\n{"fault": {"type": "Status", "code": 529}}\n')
    command = [
        sys.executable,
        "-m",
        "hotset.testing.upstream",
        "--ready-file",
        str(ready),
        "--script",
        str(script),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert "scripted upstream on http://127.0.0.1:" in process.stdout.readline()
            told = json.loads(ready.read_text())
            there = type("There", (), {"port": told["port"]})
            assert told["pid"] == process.pid
            assert b"from a file" in ask(there, "openai-chat", stream=False).body
            assert ask(there).status == 529
        finally:
            process.terminate()
        assert process.wait(120) == 0


def test_a_script_file_that_cannot_be_read_names_its_line(tmp_path):
    script = tmp_path / "script.jsonl"
    script.write_text('{"text": "fine"}\n{"fault": {"type": "Earthquake"}}\n')
    with pytest.raises(ValueError, match=r"script\.jsonl:2: not a reply"):
        read_script(script)
