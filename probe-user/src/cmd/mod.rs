//! One file per subcommand.
