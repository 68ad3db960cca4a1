--- What is done to leases with capacity: Acquire, Renew, Release and Look. See commands/shares.py.
-- @include shares

do
  local HOLDERS = {{HOLDERS}} -- so many are named to whoever is not granted a share

  function shares.granted(key, share)
    return { lease = shown(nil, key, share), ends_in = share["until"] < NEVER and math.max(share["until"] - now, 0) or nil }
  end

  --- Say who is in the way, and keep the caller's place in the line if it wants one.
  local function refused(command, name, ended, own)
    local key, id = command.key, command.lease_id
    local holders, first_end, lease = shares.by_end(key, "g", now, HOLDERS), NEVER, nil
    for i, share in ipairs(holders) do
      lease, first_end = lease or share, math.min(first_end, share["until"])
      holders[i] = shown(nil, key, share)
    end
    for _, share in ipairs(shares.by_end(key, "t", now, 2)) do
      if share.lease_id ~= id then
        lease, first_end = lease or share, math.min(first_end, share["until"])
      end
    end
    -- Where only what has ended is in the way, more than is forgotten at once, the next one to ask goes on.
    lease = lease or { holder = "", lease_id = "", token = 0, since = now, ["until"] = now }
    first_end = lease.holder == "" and now or first_end
    local answer = { lease = shown(nil, key, lease), ends_in = first_end < NEVER and first_end - now or nil }
    answer.holders = #holders > 0 and holders or nil
    if command.all_or_none then
      answer.key = key
      refuse("SharesHeld", answer)
    end
    local plan = { name = name, ended = ended, answer = answer }
    if not command.in_line then
      return plan
    end
    local first
    shares.each_in_line(name, function(share)
      first = share.place
      return false
    end)
    local place, since = own and own.place, own and own.since
    if not own then
      if command.max_waiters and name.waiting >= command.max_waiters then
        answer.key, answer.waiting = key, name.waiting
        refuse("LineFull", answer)
      end
      name.waiting, name.last = name.waiting + 1, name.last + 1
      place, since = name.last, now
    end
    answer.place = place - (first or place) + 1
    plan.share = { lease_id = id, holder = command.holder, weight = command.weight, since = since, token = 0, place = place }
    plan.share["until"] = now + command.in_line
    return plan
  end

  --- Whether there is room for the caller, behind all who came before.
  function shares.check(command)
    local key, name, own, ended = command.key, shares.name_of(command.key), nil, {}
    if not name then
      local plain = held_lease(nil, key)
      if plain then
        refuse("PlainLease", { lease = shown(nil, key, plain) })
      end
      local before = lease_of(nil, key)
      return { name = shares.new_name(key, command.capacity), ended = {}, grants = true, is_new = true, before = before }
    end
    own = shares.get(key, { command.lease_id })[1]
    if own and own["until"] > now and own.token > 0 then
      return { answer = shares.granted(key, own) }
    end
    ended = shares.sweep(name, command.lease_id)
    if not name.resized and name.capacity ~= command.capacity then
      if shares.is_kept(name) then
        refuse("OtherCapacity", { key = key, capacity = name.capacity, asked = command.capacity })
      end
      name.capacity = command.capacity
    end
    if command.weight > name.capacity then
      refuse("TooHeavy", { key = key, weight = command.weight, capacity = name.capacity })
    end
    own = own and own["until"] > now and own or nil
    local room, ahead = name.capacity - name.used, 0
    shares.each_in_line(name, function(share)
      if ahead > room or (own and share.place >= own.place) then
        return false
      end
      ahead = ahead + share.weight
    end)
    if room - ahead < command.weight then
      return refused(command, name, ended, own)
    end
    return { name = name, ended = ended, grants = true, own = own }
  end

  function shares.write(command, plan)
    local key, name = command.key, plan.name
    if not name then
      return plan.answer
    end
    if plan.before then
      tell(home_of(nil, key), "expired", { key = key, holder = plan.before.holder })
    end
    if plan.is_new then
      shares.clear_left(key)
    end
    shares.forget(key, plan.ended)
    local answer, share = plan.answer, plan.share
    if plan.grants then
      name.used, name.waiting = name.used + command.weight, name.waiting - (plan.own and 1 or 0)
      share = { lease_id = command.lease_id, holder = command.holder, weight = command.weight, since = now, place = 0 }
      share["until"] = command.lease and now + command.lease or NEVER
      share.token = shares.tell_share(key, "acquired", share)
      answer, name.ends_at = shares.granted(key, share), share["until"]
    end
    name.has_ticket = share and share.place > 0
    shares.save_name(name)
    keep_log(home_of(nil, key))
    if share then
      shares.save(key, share)
    end
    if #plan.ended > 0 then
      shares.wake_line(name)
    end
    return answer
  end

  --- Give a share back, or a place in the line, and wake those who fit now.
  function shares.release(key, id, event, reason)
    local share, name = shares.get(key, { id })[1], shares.name_of(key)
    if not share or not name then
      return
    end
    if share.token > 0 then
      shares.tell_share(key, event or "released", share, reason)
      wake("lease::" .. key, 1)
    end
    shares.delete(key, id)
    shares.take_from(name, share)
    shares.save_name(name)
    shares.wake_line(name)
  end

  --- Who holds the name, nil if nobody does; the more keys are looked at, the fewer of each.
  function shares.seen(key, keys)
    local holders = shares.by_end(key, "g", now, math.max(math.floor(HOLDERS / keys), 1))
    if #holders == 0 then
      return nil
    end
    local answer = shares.granted(key, holders[1])
    for i, share in ipairs(holders) do
      holders[i] = shown(nil, key, share)
    end
    answer.holders = holders
    return answer
  end

  --- What somebody has under an id of a name with capacity, nil where that has none, or it has ended.
  function shares.held(key, id)
    local name = lease_of(nil, key)
    local share = name and name.capacity and shares.get(key, { id })[1]
    return share and share["until"] > now and share or nil
  end

  --- What each of the names {dict or '', key, lease_id} still holds: a lease, a share, or only a place in line; false where it is lost.
  --
  -- A dict has a name, so '' stands for none.
  function shares.of_names(command)
    local held = {}
    for i, name in ipairs(command.names) do
      local dict = name[1] ~= "" and name[1] or nil
      held[i] = held_lease(dict, name[2], name[3]) or (not dict and shares.held(name[2], name[3])) or false
      if command.all_or_none and not (held[i] and held[i].token > 0) then
        refuse("LeaseLost", { dict = dict, key = name[2], lease_id = name[3] })
      end
    end
    return held
  end
end
