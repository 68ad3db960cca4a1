--- Browse: look at messages without touching them, by id, by key, or all of one state in its own order, page by page.
--
-- KEYS  1 the store  2 the queue
-- ARGV  1 the command: queue and ids, or keys, or state, which {older_than, error_contains, key_prefix}, after, limit
--       2 ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers messages, their values, the newest event's number and the moment.
-- @include browsing

local browse = {}

--- The living messages under these keys, each before the copy that waits behind it.
local function under_keys(queue, keys)
  local found, seen = {}, {}
  load_keys(queue, keys)
  for _, key in ipairs(keys) do
    if not seen[key] then
      found[#found + 1] = live_of(queue, key)
      found[#found + 1] = copy_of(queue, key)
      seen[key] = true
    end
  end
  return found
end

function browse.check(command)
  local queue = open_queue(command.queue)
  local found
  if command.ids then
    found = pick(queue, command.ids)
  elseif command.keys then
    found = under_keys(queue, command.keys)
  else
    found = browse_state(queue, command.state, command.which, command.after, command.limit)
  end
  -- A copy: what the same step changes later is not to be seen.
  local seen = cmsgpack.unpack(cmsgpack.pack(found))
  return { messages = seen, values = values_of(queue, found), index = numbers.latest(), now = now }
end

function browse.write(_, plan)
  return plan
end

commands.Browse = browse
