--- Acquire: take a lease if it is free; either way, answer the lease now in force.
--
-- KEYS  1 the store  2 the dict, or the lease's own key
-- ARGV  1 the command: dict (none: a name of its own), key, holder, lease_id, lease (none: without end), default, all_or_none,
--         and for a name with capacity: capacity, weight, in_line (none: without a place in line), max_waiters
--       2 its id, or ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers lease, ends_in and entry, and of a name with capacity holders and place.
-- @include writing
-- @include share_commands

local acquire = {}

local function answer_with(command, lease, entry)
  return {
    lease = shown(command.dict, command.key, lease),
    ends_in = lease["until"] < NEVER and lease["until"] - now or nil,
    entry = entry,
  }
end

function acquire.check(command)
  if command.capacity then
    return shares.check(command)
  end
  local name = not command.dict and shares.name_of(command.key)
  if name then
    local capacity, ended = name.capacity, shares.sweep(name)
    if shares.is_kept(name) then
      refuse("OtherCapacity", { key = command.key, capacity = capacity })
    end
    return { ended = ended }
  end
  local held = held_lease(command.dict, command.key)
  if command.all_or_none and held and held.lease_id ~= command.lease_id then
    refuse("LeaseHeld", { lease = shown(command.dict, command.key, held), ends_in = held["until"] - now })
  end
  local plan = { held = held, entry = command.dict and entry_of(open_dict(command.dict), command.key) }
  if not held and command.dict and command.default and not plan.entry then
    plan.changes = { { key = command.key, value = command.default, expect = "absent" } }
    plan.default = plan_changes(open_dict(command.dict), plan.changes)
  end
  return plan
end

function acquire.write(command, plan)
  if command.capacity then
    return shares.write(command, plan)
  end
  if plan.held then
    return answer_with(command, plan.held, plan.entry)
  end
  local home, before = home_of(command.dict, command.key), lease_of(command.dict, command.key)
  if plan.ended then
    -- What is left of a name with capacity that nobody uses any more.
    shares.forget(command.key, plan.ended)
  elseif before then
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
  if command.capacity then
    local share = shares.held(command.key, command.lease_id)
    return share and share.token > 0 and shares.granted(command.key, share) or note
  end
  local held = held_lease(command.dict, command.key)
  if not held or held.capacity then
    return note
  end
  return answer_with(command, held, command.dict and entry_of(open_dict(command.dict), command.key))
end

commands.Acquire = acquire
