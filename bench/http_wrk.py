"""The same load by wrk, where it is installed: written in C, it leaves the processor to the servers."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from msgspec import json

from bench.http_load import Load

SCRIPT = """
local run, count, receipts, failed = "%(run)s", 0, {}, 0

local function id()
  count = count + 1
  return run .. "-" .. count
end

local function echo()
  return wrk.format("POST", "/echo", nil, '%(value)s')
end

local function put()
  return wrk.format("POST", "/v1/put", nil,
    '{"queue":"%(queue)s","items":[{"id":"' .. id() .. '","value":%(value)s}],"id":"' .. id() .. '"}')
end

local function work()
  local receipt = table.remove(receipts)
  if receipt then
    return wrk.format("POST", "/v1/settle", nil, '{"receipts":[["%(queue)s",' .. receipt .. ']],"id":"' .. id() .. '"}')
  end
  return wrk.format("POST", "/v1/claim", nil, '{"queue":"%(queue)s","holder":"bench","lease_s":60,"id":"' .. id() .. '"}')
end

wrk.headers["Content-Type"] = "application/json"
request = %(kind)s

if request == work then
  response = function(status, headers, body)
    local message, token = body:match('"id":("[^"]+").-"token":(%%d+)')
    if message then
      table.insert(receipts, message .. "," .. token)
    end
  end
end

done = function(summary, latency)
  local errors = summary.errors
  failed = errors.status + errors.connect + errors.read + errors.write + errors.timeout
  io.write(string.format('\\n{"rate":%%f,"p99_ms":%%f,"failed":%%d}\\n',
    summary.requests / summary.duration * 1e6, latency:percentile(99) / 1e3, failed))
end
"""


def find_wrk() -> str | None:
    """Where wrk is, if it is."""
    return shutil.which("wrk")


def run_wrk(wrk: str, port: int, kind: str, *, queue: str, value: bytes, connections: int, seconds: float) -> Load:
    """One kind of request ("echo", "put", or "work" for claim and acknowledge in turn), on so many connections."""
    filled = {"run": f"{kind}-{queue}", "queue": queue, "value": value.decode(), "kind": kind}
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "load.lua")
        script.write_text(SCRIPT % filled)
        how = ["-t", "1", "-c", str(connections), "-d", f"{max(1, round(seconds))}s", "-s", str(script)]
        told = subprocess.check_output([wrk, *how, f"http://localhost:{port}"], text=True)
    return json.decode(told.strip().splitlines()[-1], type=Load)
