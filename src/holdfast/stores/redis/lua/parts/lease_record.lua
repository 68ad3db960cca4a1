--- How a lease is kept: a packed map whose fields are always in one place, so that the fast paths read and change it without unpacking it.
--
-- Token, since and until, each of eight bytes; then "holder" and the holder; at the end "lease_id" and the id.
-- @include begin

local LEASE = ">c8I8c7I8c7I8"
local SINCE_AT, ENDS_AT, HOLDER_AT = 24, 39, 47 -- where these are in it
local LEASE_HEAD, SINCE, ENDS = "\133\165token\207", "\165since\207", "\165until\207"
local LEASE_ID = "\168lease_id"

local function pack_text(words)
  if #words < 65536 then
    return "\218" .. struct.pack(">I2", #words) .. words
  end
  return "\219" .. struct.pack(">I4", #words) .. words
end

local function pack_lease(lease)
  return struct.pack(LEASE, LEASE_HEAD, lease.token, SINCE, lease.since, ENDS, lease["until"])
    .. "\166holder"
    .. pack_text(lease.holder)
    .. LEASE_ID
    .. pack_text(lease.lease_id)
end
