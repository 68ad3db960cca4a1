--- Started: what every connection asks first, since the server may have been started anew, without its latest writes or with a backup's data.
--
-- Numbers go on at the clock by themselves. Those between the newest that is known and the clock were lost, if they ever were: whoever has
-- one of them is told to begin anew.
-- KEYS  1 the store
-- ARGV  1 nothing, packed  2 ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- @include step

local GAPS = 10000 -- so many are known; whoever asks for events before the oldest of them begins anew

local started = {}

function started.check() end

function started.write()
  local info = redis.pcall("INFO", "server") -- not everybody may ask
  local run = type(info) == "string" and string.match(info, "run_id:(%x+)")
  local known = call("GET", store .. ":run")
  if not run or run == known then
    return {}
  end
  call("SET", store .. ":run", run)
  local latest, gaps = numbers.latest(), store .. ":gaps"
  if known and now > latest + 1 then
    call("ZADD", gaps, text(now), text(latest))
  end
  if call("ZCARD", gaps) > GAPS then
    local oldest = call("ZRANGE", gaps, "0", "0", "WITHSCORES")
    call("ZREM", gaps, oldest[1])
    call("SET", store .. ":floor", text(math.max(tonumber(oldest[2]), tonumber(call("GET", store .. ":floor") or 0))))
  end
  return {}
end

commands.Started = started
