--- Decides as `admit-reference.lua`, with the same keys and arguments. Limits may also be metered.

--@include ../../../access/admission/redis/exact-window.lua
--@include recorded-plans.lua
--@include meters.lua
--@include ../../../access/admission/redis/admit-reference.lua
