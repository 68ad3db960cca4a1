"""A model for tests: a local HTTP server that speaks OpenAI's protocols, and counts what it is asked.

It looks the weather up in one city after the other, each with a call of the tool `weather`, and then says what it has seen.
"""

import json
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CITIES = ("Vienna", "Graz")
REQUESTS = len(CITIES) + 1
"""How many requests one run of an agent takes."""


class StubModel:
    """The server; `paid` counts requests by what was asked, `url` is the base URL for clients."""

    def __init__(self) -> None:
        self.paid: Counter[str] = Counter()
        self.fails = 0
        """So many requests are answered with an error."""
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                status, answer = stub.answer(self.path, asked)
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, path: str, asked: dict[str, Any]) -> tuple[int, Any]:
        """What the model says."""
        if self.fails:
            self.fails -= 1
            return 400, {"error": {"message": "not now", "type": "invalid_request_error"}}
        is_chat = path.endswith("/chat/completions")
        messages = asked["messages"] if is_chat else asked["input"]
        seen = [one for one in messages if one.get("role") == "tool" or one.get("type") == "function_call_output"]
        self.paid[json.dumps([len(seen), messages], sort_keys=True)] += 1
        texts = [_text_of(one.get("content") or one.get("output")) for one in seen]
        call = None if len(seen) == len(CITIES) else {"city": CITIES[len(seen)]}
        return 200, (_chat if is_chat else _response)(len(seen), call, "; ".join(texts))


def _text_of(output: Any) -> str:
    """What a tool returned: a text, or parts that are texts."""
    return output if isinstance(output, str) else "".join(part["text"] for part in output)


def _chat(number: int, call: dict[str, str] | None, text: str) -> Any:
    message: dict[str, Any] = {"role": "assistant", "content": text if call is None else None}
    if call is not None:
        function = {"name": "weather", "arguments": json.dumps(call)}
        message["tool_calls"] = [{"id": f"call-{number}", "type": "function", "function": function}]
    return {
        "id": f"chat-{number}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "stub",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop" if call is None else "tool_calls"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


def _response(number: int, call: dict[str, str] | None, text: str) -> Any:
    said = {"type": "output_text", "text": text, "annotations": []}
    output: dict[str, Any] = {"id": f"msg-{number}", "type": "message", "role": "assistant", "status": "completed", "content": [said]}
    if call is not None:
        output = {"id": f"fc-{number}", "type": "function_call", "status": "completed", "call_id": f"call-{number}", "name": "weather"}
        output["arguments"] = json.dumps(call)
    return {
        "id": f"resp-{number}",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "completed",
        "model": "stub",
        "output": [output],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 10,
            "output_tokens": 5,
            "total_tokens": 15,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }
