"""How is an experiment written, run and kept?"""
