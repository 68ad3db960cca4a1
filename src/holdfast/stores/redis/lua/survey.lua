--- Survey: what a copy of this store must know before it begins.
--
-- KEYS  1 the store
-- ARGV  1 the command: limit (how many leases are named)
--       2 ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers now, latest, next_n and held, the leases that live, up to the limit. Costs by how many queues, dicts and leases there are.
-- @include copying

local survey = {}

function survey.check(command)
  return { now = now, latest = numbers.latest(), next_n = next_n(), held = all_held(command.limit) }
end

function survey.write(_, plan)
  return plan
end

commands.Survey = survey
