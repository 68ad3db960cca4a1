--- The short way of Acquire: a name of its own that is held, or that was given back by whoever held it last.
--
-- What is less plain goes on to the rules of acquire.lua, with nothing written.
-- @include alone

while not command.dict and command.lease do
  local number, lease, floor = read_alone()
  if not number or number % TIDY == 0 or (lease and (lease["until"] <= now or command.all_or_none)) then
    break
  end
  local packed
  if not lease then
    lease = { holder = command.holder, lease_id = command.lease_id, token = number, since = now, ["until"] = now + command.lease }
    packed = cmsgpack.pack(lease)
  end
  lease.key = command.key
  local ends_in = lease["until"] < NEVER and lease["until"] - now or nil
  local answer = cmsgpack.pack({ lease = lease, ends_in = ends_in })
  if not keep_answer(answer) then
    break
  end
  if packed then
    local number_text = text(number)
    write_event(KEYS[2], number, number_text, "acquired", MAP_OF_2 .. cmsgpack.pack("key", command.key, "holder", command.holder))
    save_alone(packed, command.lease, floor)
    call("ZADD", store .. ":logs", "0", "lease:" .. command.key)
    call("SET", counter_key, number_text)
    give_hints({ "watch:lease::" .. command.key }, { ALL })
  end
  return answer
end
