--- Leases with capacity: who is granted a share, who waits in line, and who is woken when room appears. See commands/shares.py.
--
-- The record of such a name L is a lease of nobody's without an end, with capacity, used, waiting, last and resized. Beside it lie
--   L:shares  id -> a grant with its token, or a place in line, packed                            hash
--   L:ends    "g" for a grant or "t" for a ticket, until, id, in this order                       sorted set
--   L:line    place, id, of those in line                                                         sorted set
-- All expire some days after the last grant, as other leases do, so a step that finds no record clears what may be left beside it.
-- @include lease_table

-- Made by a function: Lua allows a script 200 local names at a time.
local shares = (function()
  local shares = {}
  local names = {} -- by key: the shares that were read or changed, by id
  local SWEPT = {{SWEPT}} -- so many ended grants, and as many ended tickets, are forgotten by whoever asks next
  local LINE_LOOK, LINE_PAGE = {{LINE}}, 50 -- so far the line is looked at, and so much of it at a time
  local ENDS_ID_AT, PLACE_ID_AT = 10, 9 -- where the id is in members of L:ends and L:line


  local function of_name(key)
    local one = names[key]
    if not one then
      one = { key = key, base = key_of("lease", key), before = {}, after = {}, changed = {} }
      names[key] = one
    end
    return one
  end

  local function end_member(id, share)
    return (share.place > 0 and "t" or "g") .. sortable(share["until"]) .. id
  end

  --- The shares under these ids, each nil where there is none.
  function shares.get(key, ids)
    local one, missing, found = of_name(key), {}, {}
    for _, id in ipairs(ids) do
      if one.before[id] == nil then
        missing[#missing + 1] = id
      end
    end
    for i, packed in ipairs(fields_of(one.base .. ":shares", missing)) do
      one.before[missing[i]] = packed and cmsgpack.unpack(packed) or false
      if packed then
        one.before[missing[i]].lease_id = missing[i]
      end
    end
    for i, id in ipairs(ids) do
      local share = one.before[id]
      if one.changed[id] then
        share = one.after[id]
      end
      found[i] = share or false
    end
    return found
  end

  --- Let nothing be left that lay beside the record of a name when that expired.
  function shares.clear_left(key)
    of_name(key).is_new = true
  end

  function shares.save(key, share)
    shares.get(key, { share.lease_id })
    local one = of_name(key)
    one.after[share.lease_id], one.changed[share.lease_id] = share, true
  end

  function shares.delete(key, id)
    shares.get(key, { id })
    local one = of_name(key)
    one.after[id], one.changed[id] = false, true
  end

  --- Grants, or tickets, that end after a moment, the first first.
  function shares.by_end(key, kind, after, limit)
    local from, to = "[" .. kind .. sortable(after + 1), "[" .. kind .. AFTER_ALL
    local ids = call("ZRANGEBYLEX", of_name(key).base .. ":ends", from, to, "LIMIT", 0, limit)
    for i, member in ipairs(ids) do
      ids[i] = string.sub(member, ENDS_ID_AT)
    end
    return shares.get(key, ids)
  end

  --- Visit those in line, the first first, until `visit` answers false.
  function shares.each_in_line(name, visit)
    for first = 0, name.waiting > 0 and LINE_LOOK - 1 or -1, LINE_PAGE do
      local ids = call("ZRANGEBYLEX", of_name(name.key).base .. ":line", "-", "+", "LIMIT", first, LINE_PAGE)
      for i, member in ipairs(ids) do
        ids[i] = string.sub(member, PLACE_ID_AT)
      end
      for _, share in ipairs(shares.get(name.key, ids)) do
        if share and share.place > 0 and share["until"] > now and visit(share) == false then
          return
        end
      end
      if #ids < LINE_PAGE then
        return
      end
    end
  end

  --- Wake exactly those in line for whom, behind all before them, there is room.
  function shares.wake_line(name)
    local room = name.capacity - name.used
    shares.each_in_line(name, function(share)
      room = room - share.weight
      if room < 0 then
        return false
      end
      wake("line:" .. share.lease_id .. ":" .. name.key, 1)
    end)
  end

  --- What stands for a name with capacity, as a copy that may be changed; nil for none.
  function shares.name_of(key)
    local lease = lease_of(nil, key)
    if not (lease and lease.capacity) then
      return nil
    end
    local name = {}
    for field, content in pairs(lease) do
      name[field] = content
    end
    name.key = key
    return name
  end

  function shares.new_name(key, capacity)
    local name = { key = key, holder = "{{SHARED_HOLDER}}", lease_id = "", token = 0, since = 0, ["until"] = NEVER }
    name.capacity, name.used, name.waiting, name.last, name.resized = capacity, 0, 0, 0, false
    name.is_new = true
    return name
  end

  function shares.is_kept(name)
    return name.used > 0 or name.waiting > 0 or name.resized
  end

  function shares.take_from(name, share)
    if share.token > 0 then
      name.used = name.used - share.weight
    else
      name.waiting = name.waiting - 1
    end
  end

  --- Take what has ended out of a name, and what stands under this id if it has; answer what was taken.
  function shares.sweep(name, id)
    local ended, seen = {}, {}
    local function look_at(found)
      for _, share in ipairs(found) do
        if share and share["until"] <= now and not seen[share.lease_id] then
          ended[#ended + 1], seen[share.lease_id] = share, true
          shares.take_from(name, share)
        end
      end
    end
    look_at(shares.by_end(name.key, "g", 0, SWEPT))
    look_at(shares.by_end(name.key, "t", 0, SWEPT))
    look_at(id and shares.get(name.key, { id }) or {})
    return ended
  end

  function shares.tell_share(key, event, share, reason)
    return tell(home_of(nil, key), event, { key = key, holder = share.holder, weight = share.weight, reason = reason })
  end

  --- Save a name, or forget it when nothing is left to be remembered.
  function shares.save_name(name)
    save_lease(nil, name.key, shares.is_kept(name) and name)
  end

  function shares.forget(key, ended)
    for _, share in ipairs(ended) do
      if share.token > 0 then
        shares.tell_share(key, "expired", share)
      end
      shares.delete(key, share.lease_id)
    end
  end

  local function write_one(one, id)
    local before, share = one.before[id], one.after[id]
    if before then
      call("ZREM", one.base .. ":ends", end_member(id, before))
      if before.place > 0 then
        call("ZREM", one.base .. ":line", sortable(before.place) .. id)
      end
    end
    if not share then
      call("HDEL", one.base .. ":shares", id)
      return
    end
    share.lease_id = nil
    call("HSET", one.base .. ":shares", id, cmsgpack.pack(share))
    call("ZADD", one.base .. ":ends", "0", end_member(id, share))
    if share.place > 0 then
      call("ZADD", one.base .. ":line", "0", sortable(share.place) .. id)
    end
  end

  -- Before the leases are written, which say for how long all of a name is kept.
  table.insert(writers, 1, function()
    for _, one in pairs(names) do
      if one.is_new then
        call("DEL", one.base .. ":shares", one.base .. ":ends", one.base .. ":line")
      end
      for id in pairs(one.changed) do
        write_one(one, id)
      end
    end
  end)

  return shares
end)()
