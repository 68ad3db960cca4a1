--- Changing entries of a dict, each on its own conditions: what Write does, and Acquire for its default.
-- @include dict
-- @include lease_table
-- @include sums

local plan_changes

do -- Lua allows 200 local names at a time.
  local meets = {
    any = function()
      return true
    end,
    absent = function(entry)
      return entry == nil
    end,
    present = function(entry)
      return entry ~= nil
    end,
    null = function(entry)
      return entry == nil or entry.value == "null"
    end,
    value = function(entry, change)
      return entry ~= nil and entry.value == change.expected
    end,
    revision = function(entry, change)
      return (entry and entry.revision or 0) == (change.revision or 0)
    end,
  }

  --- What stands in the way of a change, nil for nothing.
  local function obstacle(dict, change, entry)
    if change.lease and not held_lease(dict.name, change.key, change.lease) then
      return "lease"
    elseif change.fence and fence_of(dict, change.key) > change.fence then
      return "fence"
    elseif not meets[change.expect or "any"](entry, change) then
      return "compare"
    end
    return nil
  end

  --- Refuse a fence above every token given out, which would shut out all holders to come, and one that a backup has taken back.
  local function refuse_foreign_fences(dict, changes)
    for _, change in ipairs(changes) do
      if change.fence and change.fence > numbers.latest() then
        refuse("FenceTooHigh", { dict = dict.name, key = change.key, fence = change.fence, newest = numbers.latest() })
      elseif change.fence and was_skipped(change.fence) then
        refuse("FenceLost", { dict = dict.name, key = change.key, fence = change.fence })
      end
    end
  end

  local function incremented(dict, change, entry)
    local value = entry and entry.value or "0"
    if not string.match(value, "^%-?%d") then
      refuse("NoNumber", { dict = dict.name, key = change.key })
    end
    local total = sum_of(value, change.by)
    if not total then
      refuse("NumberRange", { dict = dict.name, key = change.key })
    end
    return total
  end

  --- When the time that all units of a rate took is over, and how much too early this change is.
  local function paced(dict, change, entry)
    if entry and not entry.expires_at then
      refuse("NoRate", { dict = dict.name, key = change.key })
    end
    local until_then = math.max(entry and entry.expires_at or now, now) + (change.cost or 1) * change.interval_us
    return until_then, until_then - (change.burst or 1) * change.interval_us - now
  end

  --- Each change with its outcome: {because, entry, due_in}; the revision of what will be written is not known yet.
  function plan_changes(dict, changes)
    local keys, plan = {}, {}
    for i, change in ipairs(changes) do
      keys[i] = change.key
    end
    refuse_foreign_fences(dict, changes)
    load_entries(dict, keys)
    for i, change in ipairs(changes) do
      local entry = dict.entries[change.key] or nil
      local because = obstacle(dict, change, entry)
      local is_write = not change["do"] or change["do"] == "increment" or change["do"] == "pace"
      local expires_at, due_in = change.ttl and now + change.ttl, nil
      if not because and change["do"] == "pace" then
        expires_at, due_in = paced(dict, change, entry)
        because = due_in > 0 and "rate" or nil
      end
      if not because and is_write then
        local fence = math.max(change.fence or 0, fence_of(dict, change.key))
        plan[i] = {
          entry = {
            key = change.key,
            value = change["do"] == "increment" and incremented(dict, change, entry) or change.value or "null",
            fence = fence > 0 and fence or nil,
            expires_at = expires_at,
          },
        }
      else
        plan[i] = { because = because, entry = entry, due_in = because == "rate" and due_in or nil }
      end
    end
    return plan
  end
end

--- Carry a planned change out; deleting what is absent and comparing change nothing, so they are no events.
local function write_change(dict, change, one)
  local is_delete = change["do"] == "delete"
  if one.because or change["do"] == "compare" then
    return
  end
  if is_delete then
    if one.entry then
      create(dict)
      tell(dict, "deleted", { key = change.key })
      save_entry(dict, change.key, false)
    end
  else
    create(dict)
    one.entry.revision = tell(dict, "written", { key = change.key, value = one.entry.value })
    save_entry(dict, change.key, one.entry)
  end
  if change.fence then
    -- Also where there was nothing to delete: a stale holder must not write it afterwards.
    raise_fence(dict, change.key, change.fence)
  end
end

--- Carry planned changes out; sometimes clear a few entries away that are past their time.
local function write_changes(dict, changes, plan)
  if numbers.latest() % TIDY == 0 then
    expire_entries(dict, 20)
  end
  for i, change in ipairs(changes) do
    write_change(dict, change, plan[i])
  end
end
