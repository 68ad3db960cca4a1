"""The least a script can do for a queue with leases and tokens on Redis: what ours is measured against."""

import os
from itertools import count
from typing import Any

import redis

from bench.ours import VALUE

PUT = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
for i = 1, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  redis.call('ZADD', KEYS[2], now, ARGV[i])
end
return #ARGV / 2
"""

CLAIM = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now, 'LIMIT', 0, 100)) do
  redis.call('ZREM', KEYS[3], id)
  redis.call('ZADD', KEYS[2], now, id)
end
local claimed = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, ARGV[1])) do
  local token = redis.call('INCR', KEYS[5])
  redis.call('ZREM', KEYS[2], id)
  redis.call('ZADD', KEYS[3], now + ARGV[2], id)
  redis.call('HSET', KEYS[4], id, token)
  claimed[#claimed + 1] = id
  claimed[#claimed + 1] = token
  claimed[#claimed + 1] = redis.call('HGET', KEYS[1], id)
end
return claimed
"""

ACK = """
local acknowledged = 0
for i = 1, #ARGV, 2 do
  if redis.call('HGET', KEYS[3], ARGV[i]) == ARGV[i + 1] then
    redis.call('ZREM', KEYS[1], ARGV[i])
    redis.call('HDEL', KEYS[2], ARGV[i])
    redis.call('HDEL', KEYS[3], ARGV[i])
    acknowledged = acknowledged + 1
  end
end
return acknowledged
"""


class RawQueue:
    """Four keys, three scripts, the library's own client."""

    def __init__(self, url: str, name: str = "raw") -> None:
        self._client = redis.Redis.from_url(url)
        self._keys = [f"{name}:{part}" for part in ("values", "ready", "leased", "tokens", "counter")]
        self._put, self._claim, self._ack = (self._client.register_script(text) for text in (PUT, CLAIM, ACK))
        self._names = count()

    def put(self, size: int) -> int:
        words = [word for _ in range(size) for word in (f"{os.getpid()}-{next(self._names)}", VALUE)]
        self._put(keys=self._keys[:2], args=words)
        return size

    def cycle(self, size: int) -> int:
        claimed: list[Any] = self._claim(keys=self._keys, args=[size, 30_000_000])
        words = [word for place in range(0, len(claimed), 3) for word in claimed[place : place + 2]]
        _, _, leased, tokens, _ = self._keys
        if words:
            self._ack(keys=[leased, self._keys[0], tokens], args=words)
        return len(claimed) // 3

    def close(self) -> None:
        self._client.close()
