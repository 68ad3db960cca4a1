--- The log of one object's events: a stream whose ids are the events' numbers, with what was pruned from its beginning.
-- @include step

--- The number of an event, as it was read.
local function number_of(entry)
  return tonumber(string.match(entry[1], "^%d+"))
end

--- When it was.
local function moment_of(entry)
  return tonumber(entry[2][6]) or number_of(entry)
end

--- Drop the oldest events of a log: those older than a moment, and those beyond the newest `keep`, none younger than `never_after`.
local function prune_log(key, keep, older_than, never_after, limit)
  local excess = call("XLEN", key .. ":events") - keep
  local before = math.min(older_than, never_after)
  local function may_go(entry, dropped)
    local at = moment_of(entry)
    return at < before or (dropped < excess and at < never_after)
  end
  -- Nearly always the oldest stays, and then so do all others.
  local oldest = call("XRANGE", key .. ":events", "-", "+", "COUNT", "1")[1]
  if not (oldest and may_go(oldest, 0)) then
    return 0
  end
  local dropped, floor = 0, nil
  for _, entry in ipairs(call("XRANGE", key .. ":events", "-", "+", "COUNT", limit)) do
    if not may_go(entry, dropped) then
      break
    end
    dropped, floor = dropped + 1, number_of(entry)
  end
  if floor then
    call("XTRIM", key .. ":events", "MINID", text(floor + 1))
    call("SET", key .. ":floor", text(floor))
  end
  return dropped
end

local logs = {} -- objects whose log is to be remembered

--- Remember that an object has a log, so that Prune finds it, whatever becomes of the object.
local function keep_log(object)
  logs[object.kind .. ":" .. object.name] = true
end

--- Look at the next `limit` logs, going on where the last look stopped: `visit` kind, name and key of each, and forget what is gone.
local function each_log(limit, visit)
  local cursor = call("GET", store .. ":logs:cursor") or ""
  local found = call("ZRANGEBYLEX", store .. ":logs", cursor == "" and "-" or "(" .. cursor, "+", "LIMIT", 0, limit)
  for _, member in ipairs(found) do
    local kind, name = string.match(member, "^(%a+):(.*)$")
    local key = key_of(kind, name)
    if call("EXISTS", key, key .. ":events") == 0 then
      call("ZREM", store .. ":logs", member)
    else
      visit(kind, name, key)
    end
  end
  call("SET", store .. ":logs:cursor", #found == limit and found[limit] or "")
end

--- Write the events of this step. About one in a hundred also tidies up a little, so that no log needs a sweeper.
local function write_events()
  for member in pairs(logs) do
    call("ZADD", store .. ":logs", "0", member)
  end
  local crowded
  for _, one in ipairs(events) do
    local key = one.object.key
    write_event(key, one.number, text(one.number), one.event, cmsgpack.pack(one.data))
    crowded = one.number % TIDY == 0 and key or crowded
  end
  if crowded then
    prune_log(crowded, RETAINED, now - RETAINED_S * 1000000, now - RETRY_S * 1000000, 200)
    each_log(20, function() end)
  end
end

writers[#writers + 1] = write_events
