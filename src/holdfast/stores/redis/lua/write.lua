--- Write: change entries of a dict, each on its own conditions.
--
-- KEYS  1 the store  2 the dict
-- ARGV  1 the command: dict, all_or_none, changes, each with key, do, value, by (as text), expect, expected, revision, lease, fence, ttl, interval_us,
--         burst, cost; what is as by default is left out: a put without a condition is key and value
--       2 its id, or ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers a list of {entry, because, due_in}: the entry now in force, or the one a delete removed, what stood in the way, and when a change
-- that came too early may be made.
-- @include writing

local write = {}

function write.check(command)
  local plan = plan_changes(open_dict(command.dict), command.changes)
  for i, one in ipairs(plan) do
    if command.all_or_none and one.because then
      local change = command.changes[i]
      refuse("NotWritten", { dict = command.dict, key = change.key, because = one.because, lease = change.lease, due_in = one.due_in })
    end
  end
  local size = 0
  for _, one in ipairs(plan) do
    size = size + (one.entry and #one.entry.value or 0)
  end
  if answered + size > ANSWER_BYTES then
    refuse_answer()
  end
  answered = answered + size
  return plan
end

function write.write(command, plan)
  write_changes(open_dict(command.dict), command.changes, plan)
  -- A table without fields would be packed as a list.
  local answer = {}
  for i, one in ipairs(plan) do
    answer[i] = { entry = one.entry or false, because = one.because or "", due_in = one.due_in }
  end
  return answer
end

commands.Write = write
