--- Browse: look at messages without touching them, by id, by key, or all of one state in its own order, page by page.
--
-- KEYS  1 the store  2 the queue
-- ARGV  1 the command: queue and ids, or keys, or state, which (see Filter), after, limit
--       2 ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers messages, their values, the newest event's number, the moment, whether the answer did not take all that were named, and where a
-- page goes on.
-- @include browsing

local browse = {}

--- The ids of the living messages under these keys, each before the copy that waits behind it.
local function under_keys(queue, keys)
  local ids, seen = {}, {}
  for _, key in ipairs(keys) do
    if not seen[key] then
      load_keys(queue, { key })
      ids[#ids + 1] = queue.live[key] or nil
      ids[#ids + 1] = queue.copies[key] or nil
      seen[key] = true
    end
  end
  return ids
end

--- The messages with these ids that the answer takes, and whether it does not take them all.
local function named(queue, ids)
  local found = {}
  local are_all = visit_messages(queue, ids, function(message)
    if not bring(message_bytes(queue, message)) then
      return false
    end
    found[#found + 1] = message
  end)
  if not are_all and #found == 0 then
    refuse_answer()
  end
  return found, not are_all
end

function browse.check(command)
  local queue = open_queue(command.queue)
  local found, more, after
  if command.ids or command.keys then
    found, more = named(queue, command.ids or under_keys(queue, command.keys))
  else
    found, after = browse_state(walk_of(queue, command.which), command.state, command.after, command.limit, true)
  end
  -- A copy: what the same step changes later is not to be seen.
  local seen = cmsgpack.unpack(cmsgpack.pack(found))
  return { messages = seen, values = values_of(queue, found), index = numbers.latest(), now = now, more = more, after = after }
end

function browse.write(_, plan)
  return plan
end

commands.Browse = browse
