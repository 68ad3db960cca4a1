--- Leases: on a key of a dict, or with no dict on a name of its own.
--
-- Those of a dict D lie in the hash D:leases, key -> the lease, packed. Each other one is an object: the string L, with its log beside it;
-- both expire some days after the lease, so that names that are never used again take no room.
-- @include log
-- @include lease_record

local leases = {} -- by dict, then key: {lease or false, is_changed}

--- The object in whose log a lease is told of.
local function home_of(dict, key)
  if dict then
    return { kind = "dict", name = dict, topic = "dict:" .. dict, key = key_of("dict", dict) }
  end
  return { kind = "lease", name = key, topic = "lease::" .. key, key = key_of("lease", key), is_alone = true }
end

local function slot(dict, key)
  local of = dict or false
  leases[of] = leases[of] or {}
  if not leases[of][key] then
    local home = home_of(dict, key)
    local packed
    if dict then
      packed = call("HGET", home.key .. ":leases", key)
    else
      packed = call("GET", home.key)
    end
    leases[of][key] = { home = home, key = key, lease = packed and cmsgpack.unpack(packed) }
  end
  return leases[of][key]
end

--- The last lease on a key, ended or not, or nil.
local function lease_of(dict, key)
  return slot(dict, key).lease or nil
end

local function save_lease(dict, key, lease)
  local one = slot(dict, key)
  one.lease, one.is_changed = lease, true
end

--- The last lease on a key if it has not ended, and only if it has this id where one is given; else nil.
local function held_lease(dict, key, lease_id)
  local lease = lease_of(dict, key)
  if lease and lease["until"] > now and (lease_id == nil or lease.lease_id == lease_id) then
    return lease
  end
  return nil
end

--- Give a lease back, tell of it, and wake who waits for it.
local function end_lease(dict, key)
  local lease = lease_of(dict, key)
  tell(home_of(dict, key), "released", { key = key, holder = lease.holder })
  save_lease(dict, key, false)
  wake("lease:" .. (dict or "") .. ":" .. key, 1)
end

local function write_lease(one)
  local lease, key = one.lease, one.home.key
  if not one.home.is_alone then
    if lease then
      call("HSET", key .. ":leases", one.key, pack_lease(lease))
    else
      call("HDEL", key .. ":leases", one.key)
    end
    return
  end
  local span_s, log_s = 0, RETAINED_S
  if lease then
    call("SET", key, pack_lease(lease))
    span_s, log_s = math.ceil((lease["until"] - now) / 1000000), LOG_S
  else
    call("DEL", key)
  end
  for part, seconds in pairs({ [""] = RETAINED_S, [":events"] = log_s, [":floor"] = log_s }) do
    if lease and lease["until"] >= NEVER then
      call("PERSIST", key .. part)
    else
      call("EXPIRE", key .. part, seconds + span_s)
    end
  end
end

writers[#writers + 1] = function()
  for _, of_dict in pairs(leases) do
    for _, one in pairs(of_dict) do
      if one.is_changed then
        write_lease(one)
      end
    end
  end
end

--- The lease in force as an answer shows it.
local function shown(dict, key, lease)
  return {
    dict = dict,
    key = key,
    holder = lease.holder,
    lease_id = lease.lease_id,
    token = lease.token,
    since = lease.since,
    ["until"] = lease["until"],
  }
end

--- The lease that each of the names {dict or '', key, lease_id} still holds, false where it is lost.
--
-- A dict has a name, so '' stands for none.
local function held_leases(command)
  local held = {}
  for i, name in ipairs(command.names) do
    local dict = name[1] ~= "" and name[1] or nil
    held[i] = held_lease(dict, name[2], name[3]) or false
    if command.all_or_none and not held[i] then
      refuse("LeaseLost", { dict = dict, key = name[2], lease_id = name[3] })
    end
  end
  return held
end
