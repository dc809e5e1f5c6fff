# What a builder may choose. Each block: the option, what it costs, what it gives.

set(TANDEM_CUDA AUTO CACHE STRING "AUTO: with nvcc if it is found. ON: require it. OFF: CPU only.")
set_property(CACHE TANDEM_CUDA PROPERTY STRINGS AUTO ON OFF)

# One architecture keeps the everyday build short; `release` names them all.
set(TANDEM_CUDA_ARCHITECTURES 90 CACHE STRING "GPU architectures to compile kernels for.")

set(TANDEM_SANITIZE "" CACHE STRING "Sanitizers: `address,undefined` or `thread`.")

option(TANDEM_TESTS "Build the tests." ON)

# Off for users, whose compiler may warn about something ours does not; continuous integration turns it on.
option(TANDEM_WERROR "Treat warnings as errors." OFF)

option(TANDEM_CCACHE "Compile through ccache when it is found." ON)
option(TANDEM_MOLD "Link with mold when it is found." ON)

if(NOT TANDEM_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "TANDEM_CUDA is `${TANDEM_CUDA}`; expected AUTO, ON or OFF.")
endif()
