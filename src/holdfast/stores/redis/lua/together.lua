--- Together: check every command against the state before the step, then write them all; whatever fails refuses everything.
--
-- KEYS  1 the store  2… the objects of its commands
-- ARGV  1 the command: commands, each with what it is called in `command`
--       2 its id, or ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers a list of their answers.
-- @include writing
-- @include put claim extend settle move browse count counts read length write lowerfences acquire renew release resize break look leases configure clear names groups changes prune

local together = {}

function together.check(command)
  local plans = {}
  for i, one in ipairs(command.commands) do
    -- In a table of its own, since a plan may be nil.
    plans[i] = { commands[one.command].check(one) }
  end
  return plans
end

function together.write(command, plans)
  local answers, notes = {}, {}
  for i, one in ipairs(command.commands) do
    local answer, note = commands[one.command].write(one, plans[i][1])
    answers[i], notes[i] = answer, note or answer
    flush_ruled()
  end
  return answers, notes
end

function together.recall(command, notes)
  local answers = {}
  for i, one in ipairs(command.commands) do
    local recall = commands[one.command].recall
    answers[i] = recall and recall(one, notes[i]) or notes[i]
  end
  return answers
end

commands.Together = together
