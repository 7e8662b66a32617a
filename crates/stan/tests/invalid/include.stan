#include foo.stan
//^ error[include]: cannot include `foo.stan`: no include directory is given
// ----
#include ../foo.stan
//^ error[include]: cannot include `../foo.stan`: the path leaves the include directories
// ----
#include /etc/passwd
//^ error[include]: cannot include `etc/passwd`: no include directory is given
