--- What fast acquire, renew and release share: one lease with an end, of a dict or on a name of its own.
--
-- Its rules, and where it lies, are in lease_table.lua.
-- @include lease_record

--- The number to draw next, the record of the last lease on the key and when that ends, and what was pruned of its own log; nothing where
-- the store was moved.
local function read_one(dict, key)
  local known = dict and call("MGET", counter_key, moved_key) or call("MGET", counter_key, moved_key, KEYS[2], KEYS[2] .. ":floor")
  if known[2] then
    return nil
  end
  local record = known[3]
  if dict then
    record = call("HGET", KEYS[2] .. ":leases", key)
  end
  return math.max((known[1] or 0) + 1, now), record, record and struct.unpack(NUMBER, record, ENDS_AT), known[4]
end

--- Save a lease that ends after a span; on a name of its own, until a day after that.
local function save_one(dict, key, record, span)
  if dict then
    call("HSET", KEYS[2] .. ":leases", key, record)
  else
    call("SET", KEYS[2], record, "EX", RETAINED_S + math.ceil(span / 1000000))
  end
end

--- Keep the log of a name of its own for so long; answer whether there is one.
local function keep_log_for(seconds, floor)
  if floor then
    call("EXPIRE", KEYS[2] .. ":floor", seconds)
  end
  return call("EXPIRE", KEYS[2] .. ":events", seconds) == 1
end

--- Whether the log of a name, which was kept for LOG_S when the lease was taken, outlasts a moment by a day.
local function log_outlasts(record, moment)
  return moment - struct.unpack(NUMBER, record, SINCE_AT) <= (LOG_S - RETAINED_S) * 1000000
end
