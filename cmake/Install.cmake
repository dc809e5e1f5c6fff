include(GNUInstallDirs)

# `make dist` turns it on: LibTorch is then found by the launcher, and no path of this machine is written down.
option(TANDEM_RELOCATABLE "Install programs that look for libraries beside themselves only." OFF)
set(_run_path "$ORIGIN/../lib")
if(NOT TANDEM_RELOCATABLE)
  cmake_path(GET TANDEM_TORCH_DIR PARENT_PATH _site_packages)
  file(GLOB _cuda_libs LIST_DIRECTORIES true ${_site_packages}/nvidia/cu[0-9]*/lib)
  list(APPEND _run_path ${TANDEM_TORCH_DIR}/lib ${_cuda_libs})
endif()

set_target_properties(tandem_program PROPERTIES INSTALL_RPATH "${_run_path}")
install(TARGETS tandem_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY configs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/tandem/configs)
install(DIRECTORY include/tandem DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# What `make dist` takes: the programs alone.
install(TARGETS tandem_program RUNTIME DESTINATION bin COMPONENT dist EXCLUDE_FROM_ALL)
if(TARGET gpu_tests)
  set_target_properties(gpu_tests PROPERTIES INSTALL_RPATH "${_run_path}")
  install(TARGETS gpu_tests RUNTIME DESTINATION bin COMPONENT dist EXCLUDE_FROM_ALL)
endif()
