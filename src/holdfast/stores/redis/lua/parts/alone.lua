--- What the short ways of Acquire, Renew and Release share: one lease on a name of its own, with an end. Its rules are in leases.lua.
-- @include begin

--- The number to draw next, the last lease on the name, ended or not, and what was pruned of its log; nothing where the store was moved.
local function read_alone()
  local known = call("MGET", counter_key, moved_key, KEYS[2], KEYS[2] .. ":floor")
  if known[2] then
    return nil
  end
  return math.max((known[1] or 0) + 1, now), known[3] and cmsgpack.unpack(known[3]), known[4]
end

local function keep_log_for(seconds, floor)
  call("EXPIRE", KEYS[2] .. ":events", seconds)
  if floor then
    call("EXPIRE", KEYS[2] .. ":floor", seconds)
  end
end

--- Save a lease that ends after a span, and its log, until a day later.
local function save_alone(packed, span, floor)
  local seconds = RETAINED_S + math.ceil(span / 1000000)
  call("SET", KEYS[2], packed, "EX", seconds)
  keep_log_for(seconds, floor)
end
