# LibTorch from the PyPI wheel, as one imported target `tandem_torch`. Torch's own CMake package is not
# used: it refuses to configure a CUDA build of LibTorch where no CUDA toolkit is installed, and the
# CPU-only build must work there with the very same wheel.
if(DEFINED ENV{TANDEM_VENV} AND NOT TANDEM_TORCH_DIR)
  file(GLOB _torch_dirs $ENV{TANDEM_VENV}/lib/python3*/site-packages/torch)
  list(GET _torch_dirs 0 _torch_dir)
  set(TANDEM_TORCH_DIR ${_torch_dir} CACHE PATH "Folder of the torch package (holds include/ and lib/).")
endif()
if(NOT EXISTS "${TANDEM_TORCH_DIR}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "No LibTorch in TANDEM_TORCH_DIR=`${TANDEM_TORCH_DIR}`. "
    "Run `make build`, which installs it, or set TANDEM_TORCH_DIR to the folder of a torch 2.11 package.")
endif()
file(STRINGS ${TANDEM_TORCH_DIR}/include/torch/headeronly/version.h _lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH)")
string(REGEX MATCHALL "[0-9]+" _numbers "${_lines}")
list(JOIN _numbers . TANDEM_TORCH_VERSION)

add_library(tandem_torch INTERFACE)
target_include_directories(tandem_torch SYSTEM INTERFACE
  ${TANDEM_TORCH_DIR}/include ${TANDEM_TORCH_DIR}/include/torch/csrc/api/include)
# The wheel ships headers of its own, newer {fmt} but not its library, which src/torch_fmt.cpp compiles. Its
# symbols carry another version than the distribution's and do not mix.
set(_libs torch torch_cpu c10)
if(TANDEM_WITH_CUDA)
  list(APPEND _libs torch_cuda c10_cuda)
  target_compile_definitions(tandem_torch INTERFACE TANDEM_WITH_CUDA=1)
  target_link_libraries(tandem_torch INTERFACE CUDA::cudart)
  # cuBLASLt is the very one LibTorch brings and loads; the toolkit's own need not be of its version.
  get_filename_component(_nvidia ${TANDEM_TORCH_DIR}/../nvidia/cu13/lib ABSOLUTE)
  target_link_libraries(tandem_torch INTERFACE ${_nvidia}/libcublasLt.so.13)
  list(APPEND CMAKE_BUILD_RPATH ${_nvidia})  # a flag of the linker would stay in what is installed
endif()
# libtorch.so exports its own copies of parts of an older C++ library (std::filesystem among them), which
# break when ours are called with objects of the newer one. The real library must come first in the order
# in which symbols are looked up.
target_link_libraries(tandem_torch INTERFACE -Wl,--no-as-needed stdc++)
foreach(_lib IN LISTS _libs)
  # --no-as-needed: the CUDA backend registers itself when its library is loaded; nothing names it.
  target_link_libraries(tandem_torch INTERFACE -Wl,--no-as-needed ${TANDEM_TORCH_DIR}/lib/lib${_lib}.so)
endforeach()
target_link_libraries(tandem_torch INTERFACE -Wl,--as-needed)
