--- Changes: what happened on a topic after an event number.
--
-- KEYS  1 the store  2 the queue, the dict or the lease whose log it is
-- ARGV  1 the command: topic, kind and name of the object, after (-1: from the oldest that is still there), limit
--       2 ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers events {index, event, at, data}, upto and latest.
-- @include log

local changes = {}

--- The highest number that was pruned from a log, 0 for none.
--
-- The log of what was dropped or never used again expires as a whole. Numbers are never behind the clock, so without a log whoever asks
-- for what came after a number older than that may have missed something.
local function floor_of(key, after)
  local everywhere = tonumber(call("GET", store .. ":floor") or 0) -- where another store's data was taken over
  local floor = math.max(everywhere, tonumber(call("GET", key .. ":floor") or 0))
  local expired_upto = now - RETAINED_S * 1000000
  if floor == 0 and after > 0 and after < expired_upto and after < numbers.latest() and call("EXISTS", key .. ":events") == 0 then
    return expired_upto
  end
  return floor
end

--- Up to `limit` events of a log behind a number, no more than the answer takes, and whether there may be more.
local function events_behind(key, after, limit)
  local found, few = {}, FEW
  while #found < limit do
    local wanted, size = math.min(few, limit - #found), 0
    local entries = call("XRANGE", key .. ":events", "(" .. text(after), "+", "COUNT", wanted)
    for _, entry in ipairs(entries) do
      size = size + #entry[2][4]
      if not bring(#entry[2][4]) then
        if #found == 0 then
          refuse_answer()
        end
        return found, true
      end
      after = number_of(entry)
      found[#found + 1] = { index = after, event = entry[2][2], at = moment_of(entry), data = cmsgpack.unpack(entry[2][4]) }
    end
    if #entries < wanted then
      return found, false
    end
    few = size < PORTION and few * 4 or FEW
  end
  return found, true
end

function changes.check(command)
  local key = key_of(command.kind, command.name)
  local floor, latest, after = floor_of(key, command.after), numbers.latest(), command.after
  if after == -1 then
    after = floor
  elseif after < floor or after > latest or was_skipped(after) then
    refuse("Compacted", { topic = command.topic, after = after, floor = floor, latest = latest })
  end
  local found, is_full = events_behind(key, after, command.limit)
  return { events = found, upto = is_full and found[#found].index or latest, latest = latest }
end

function changes.write(_, plan)
  return plan
end

commands.Changes = changes
