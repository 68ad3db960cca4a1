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
local function end_lease(dict, key, event, reason)
  local lease = lease_of(dict, key)
  tell(home_of(dict, key), event or "released", { key = key, holder = lease.holder, reason = reason })
  save_lease(dict, key, false)
  wake("lease:" .. (dict or "") .. ":" .. key, 1)
end

do
  local PARTS = { "", ":shares", ":ends", ":line", ":events", ":floor" } -- of a name with capacity

  --- Save what stands for a name with capacity, and keep all of it some days longer than the share that was granted or renewed, if one was,
  -- ends at `ends_at`.
  local function write_shared(lease, key)
    call("SET", key, pack_lease(lease), "KEEPTTL")
    local ends_at, ttl = lease.ends_at or now, lease.is_new and 0 or call("TTL", key)
    local span_s = math.ceil((ends_at - now) / 1000000)
    if ttl < 0 then
      return -- It is kept for good: a share has no end.
    elseif lease.resized or ends_at >= NEVER then
      for _, part in ipairs(PARTS) do
        call("PERSIST", key .. part)
      end
    elseif ttl < RETAINED_S + span_s then
      for _, part in ipairs(PARTS) do
        call("EXPIRE", key .. part, LOG_S + span_s)
      end
    elseif lease.has_ticket then
      call("EXPIRE", key .. ":line", ttl)
    end
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
    if lease and lease.capacity then
      write_shared(lease, key)
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
