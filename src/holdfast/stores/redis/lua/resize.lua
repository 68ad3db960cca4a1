--- Resize: set the capacity of a name, whatever those who use it say; or, with none, let them say so again.
--
-- KEYS  1 the store  2 the lease's own key
-- ARGV  1 the command: key, capacity (none: as those say who ask)
--       2 its id, or ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers capacity and used.
-- @include shares

local resize = {}

function resize.check(command)
  local name = shares.name_of(command.key)
  local is_new, ended = not name, name and shares.sweep(name) or {}
  if not name then
    local plain = held_lease(nil, command.key)
    if plain then
      refuse("PlainLease", { lease = shown(nil, command.key, plain) })
    end
    if not command.capacity then
      return nil
    end
    name = shares.new_name(command.key, command.capacity)
  end
  name.capacity, name.resized = command.capacity or name.capacity, command.capacity ~= nil
  return { name = name, ended = ended, is_new = is_new }
end

function resize.write(command, plan)
  if not plan then
    return { used = 0 }
  end
  if plan.is_new then
    shares.clear_left(command.key)
  end
  shares.forget(command.key, plan.ended)
  shares.save_name(plan.name)
  tell(home_of(nil, command.key), "resized", { key = command.key, capacity = command.capacity or false })
  keep_log(home_of(nil, command.key))
  shares.wake_line(plan.name)
  return { capacity = shares.is_kept(plan.name) and plan.name.capacity or nil, used = plan.name.used }
end

commands.Resize = resize
