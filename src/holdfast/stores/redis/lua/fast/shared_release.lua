--- Fast release of a share that is still held, when nobody waits in line. It is part of fast/release.lua; where it ends without an answer,
-- nothing is written. See shares.lua for where all lies.

repeat
  local others, ends, packed = KEYS[2] .. ":shares", KEYS[2] .. ":ends", call("HGET", KEYS[2] .. ":shares", name[3])
  local shared, share = cmsgpack.unpack(record), packed and cmsgpack.unpack(packed)
  if shared.waiting > 0 or not share or share.token == 0 or share["until"] <= now or not keep_answer(HELD) then
    break
  end
  local number_text = text(number)
  local told = cmsgpack.pack("key", key, "holder", share.holder, "weight", share.weight)
  write_event(KEYS[2], number, number_text, "released", MAP_OF_3 .. told)
  shared.used = shared.used - share.weight
  if shared.used > 0 or shared.resized then
    call("HDEL", others, name[3])
    call("ZREM", ends, "g" .. struct.pack(NUMBER, share["until"]) .. name[3])
    call("SET", KEYS[2], pack_lease(shared), "KEEPTTL")
  else
    call("DEL", KEYS[2], others, ends)
    keep_log_for(RETAINED_S, floor)
  end
  call("SET", counter_key, number_text)
  give_hints({ WAKE .. "watch:lease::" .. key, WAKE .. "lease::" .. key }, { ALL, 1 })
  return HELD
until true
