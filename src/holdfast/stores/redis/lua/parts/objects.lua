--- Queues and dicts as a whole: whether they exist, and their settings.
-- @include log

--- An object of this step. `keep` makes what a step needs to know of it.
local function open(opened, kind, name, make)
  local object = opened[name]
  if not object then
    object = make()
    object.kind, object.name, object.topic, object.key = kind, name, kind .. ":" .. name, key_of(kind, name)
    opened[name] = object
  end
  return object
end

--- The settings of a queue or dict, nil where it does not exist.
local function settings_of(object)
  if object.settings == nil then
    local found = call("HMGET", object.key, "created_at", "paused", "maxsize")
    object.settings = found[1]
      and { created_at = tonumber(found[1]), paused = found[2] == "1", maxsize = tonumber(found[3] or nil) }
  end
  return object.settings or nil
end

--- Create a queue or dict, as the first write to it does.
local function create(object)
  if not settings_of(object) then
    object.settings = { created_at = now, paused = false }
    object.is_configured = true
    keep_log(object)
  end
end

--- Remove it from the list of names; its log stays as long as events are kept, so that watchers learn of it.
local function drop(object)
  object.settings, object.is_configured = false, true
end

--- Write the settings of an object where the step changed them.
local function write_settings(object)
  if not object.is_configured then
    return
  end
  local names = store .. ":" .. object.kind .. "s"
  call("DEL", object.key)
  if not object.settings then
    call("ZREM", names, object.name)
    call("EXPIRE", object.key .. ":events", RETAINED_S)
    call("EXPIRE", object.key .. ":floor", RETAINED_S)
    return
  end
  local settings = object.settings
  call("HSET", object.key, "created_at", text(settings.created_at), "paused", settings.paused and "1" or "0")
  if settings.maxsize then
    call("HSET", object.key, "maxsize", text(settings.maxsize))
  end
  call("ZADD", names, 0, object.name)
  call("PERSIST", object.key .. ":events")
  call("PERSIST", object.key .. ":floor")
end
