--- Acquire: take a lease if it is free; either way, answer the lease now in force.
--
-- KEYS  1 the store  2 the dict, or the lease's own key
-- ARGV  1 the command: dict (none: a name of its own), key, holder, lease_id, lease (none: without end), default, all_or_none
--       2 its id, or ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers lease, ends_in and entry.
-- @include writing

local acquire = {}

local function answer_with(command, lease, entry)
  return {
    lease = shown(command.dict, command.key, lease),
    ends_in = lease["until"] < NEVER and lease["until"] - now or nil,
    entry = entry,
  }
end

function acquire.check(command)
  local held = held_lease(command.dict, command.key)
  if command.all_or_none and held and held.lease_id ~= command.lease_id then
    refuse("LeaseHeld", { lease = shown(command.dict, command.key, held), ends_in = held["until"] - now })
  end
  local plan = { held = held, entry = command.dict and entry_of(open_dict(command.dict), command.key) }
  if not held and command.dict and command.default and not plan.entry then
    plan.changes = { { key = command.key, ["do"] = "put", value = command.default, expect = "absent" } }
    plan.default = plan_changes(open_dict(command.dict), plan.changes)
  end
  return plan
end

function acquire.write(command, plan)
  if plan.held then
    return answer_with(command, plan.held, plan.entry)
  end
  local home, before = home_of(command.dict, command.key), lease_of(command.dict, command.key)
  if before then
    -- With its holder: in the log of a dict an entry expires too.
    tell(home, "expired", { key = command.key, holder = before.holder })
  end
  local lease = {
    holder = command.holder,
    lease_id = command.lease_id,
    token = tell(home, "acquired", { key = command.key, holder = command.holder }),
    since = now,
    ["until"] = command.lease and now + command.lease or NEVER,
  }
  save_lease(command.dict, command.key, lease)
  keep_log(home)
  local entry = plan.entry
  if plan.default then
    write_change(open_dict(command.dict), plan.changes[1], plan.default[1])
    entry = plan.default[1].entry
  end
  return answer_with(command, lease, entry)
end

--- The lease in force, or, when there is none any more, the answer as it was: a repetition never takes a lease.
function acquire.recall(command, note)
  local held = held_lease(command.dict, command.key)
  if not held then
    return note
  end
  return answer_with(command, held, command.dict and entry_of(open_dict(command.dict), command.key))
end

commands.Acquire = acquire
