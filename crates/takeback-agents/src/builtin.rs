//! An agent of Takeback's own: five tools, and a model behind an endpoint or a scenario file.
