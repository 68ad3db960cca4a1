--- Messages in the form in which the short ways keep those that have no key and were claimed at most once: packed like all others, but
-- spliced from packed pieces instead of being unpacked and packed again. What the long way changes it packs in the usual form.
--
-- It is a map with a length of two bytes, which `cmsgpack` itself uses for no less than 16 fields, and it begins with
--   3 how many fields   7 n                             the bytes of a message that was never claimed
--   22 its token        37 the end of its lease         and of one that is claimed for the first time
-- of which all but the first are numbers of eight bytes. The other fields follow.
-- @include begin

local N, TOKEN, UNTIL = "\161n\207", "\165token\207", "\165until\207" -- what these fields begin with

--- The beginning of a message of so many fields.
local function head_of(count)
  return "\222\0" .. string.char(count)
end

local function is_spliced(packed)
  return string.sub(packed, 1, 2) == "\222\0" and string.byte(packed, 3) < 16
end
