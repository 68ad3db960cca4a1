--- The short way of Release: one name of its own, still held.
--
-- What is less plain goes on to the rules of release.lua, with nothing written.
-- @include alone

while #command.names == 1 and command.names[1][1] == "" do
  local key, lease_id = command.names[1][2], command.names[1][3]
  local number, lease, floor = read_alone()
  if not number or number % TIDY == 0 or not lease or lease["until"] <= now or lease.lease_id ~= lease_id then
    break
  end
  local answer = cmsgpack.pack({ held = { true } })
  if not keep_answer(answer) then
    break
  end
  local number_text = text(number)
  write_event(KEYS[2], number, number_text, "released", MAP_OF_2 .. cmsgpack.pack("key", key, "holder", lease.holder))
  call("DEL", KEYS[2])
  keep_log_for(RETAINED_S, floor)
  call("SET", counter_key, number_text)
  give_hints({ "watch:lease::" .. key, "lease::" .. key }, { ALL, 1 })
  return answer
end
